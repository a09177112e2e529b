// Copyright (c) 2026 kubegpu.nodes contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	resources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const (
	podResources = "/var/lib/kubelet/pod-resources/kubelet.sock"
	askKubelet   = 10 * time.Second
)

// dcgmExporter stands in for NVIDIA's exporter 4.8.3: its settings, its format, the GPUs that the
// runtime gave, and the pods that use them as the kubelet tells. The values are made.
func dcgmExporter() int {
	fields, err := readCounters(os.Getenv("DCGM_EXPORTER_COLLECTORS"))
	if err == nil && len(gpus()) == 0 {
		err = fmt.Errorf("no GPU is in this container")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dcgm-exporter (kubegpu.nodes stand-in):", err)
		return 1
	}
	http.HandleFunc("/health", func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(answer, "KO")
	})
	http.HandleFunc("/metrics", func(answer http.ResponseWriter, _ *http.Request) {
		page, err := metricsPage(fields)
		if err != nil {
			http.Error(answer, err.Error(), http.StatusInternalServerError)
			return
		}
		answer.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		fmt.Fprint(answer, page)
	})
	fmt.Fprintln(os.Stderr, http.ListenAndServe(os.Getenv("DCGM_EXPORTER_LISTEN"), nil))
	return 1
}

// readCounters reads the file of counters as strictly as the real one.
func readCounters(path string) ([][]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	reader := csv.NewReader(file)
	reader.Comment = '#'
	reader.FieldsPerRecord = 3
	reader.TrimLeadingSpace = true
	return reader.ReadAll()
}

func metricsPage(fields [][]string) (string, error) {
	users, err := users()
	if err != nil {
		return "", err
	}
	var page strings.Builder
	for _, field := range fields {
		// Events are shown while there are some, and labels are on each sample.
		if field[1] == "label" || strings.HasPrefix(field[0], "DCGM_EXP_") {
			continue
		}
		fmt.Fprintf(&page, "# HELP %s %s\n# TYPE %s %s\n", field[0], field[2], field[0], field[1])
		for _, one := range gpus() {
			fmt.Fprintf(&page,
				"%s{gpu=%q,UUID=%q,device=\"nvidia%s\",modelName=\"stand-in\",hostname=%q,DCGM_FI_DRIVER_VERSION=%q%s} 40\n",
				field[0], one.index, one.uuid, one.index, os.Getenv("NODE_NAME"), os.Getenv(givenDriver),
				users[one.uuid])
		}
	}
	return page.String(), nil
}

// users returns the labels of the pod that has each GPU.
func users() (map[string]string, error) {
	found := map[string]string{}
	if os.Getenv("DCGM_EXPORTER_KUBERNETES") != "true" {
		return found, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), askKubelet)
	defer cancel()
	connection, err := grpc.DialContext(ctx, podResources, grpc.WithInsecure(), grpc.WithBlock(),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", podResources, err)
	}
	defer connection.Close()
	answer, err := resources.NewPodResourcesListerClient(connection).List(ctx, &resources.ListPodResourcesRequest{})
	if err != nil {
		return nil, err
	}
	for _, pod := range answer.GetPodResources() {
		for _, container := range pod.GetContainers() {
			for _, device := range container.GetDevices() {
				for _, id := range device.GetDeviceIds() {
					found[id] = fmt.Sprintf(",container=%q,namespace=%q,pod=%q",
						container.GetName(), pod.GetNamespace(), pod.GetName())
				}
			}
		}
	}
	return found, nil
}
