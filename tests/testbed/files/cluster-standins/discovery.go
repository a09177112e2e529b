// Copyright (c) 2026 kubegpu.nodes contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"
)

// discoveryFlags are the real GPU feature discovery's (v0.20.0, cmd/gpu-feature-discovery/main.go).
var discoveryFlags = map[string][2]string{
	"mig-strategy":         {"MIG_STRATEGY", "none"},
	"fail-on-init-error":   {"FAIL_ON_INIT_ERROR", "true"},
	"oneshot":              {"GFD_ONESHOT", "false"},
	"output-file":          {"GFD_OUTPUT_FILE", "/etc/kubernetes/node-feature-discovery/features.d/gfd"},
	"config-file":          {"CONFIG_FILE", ""},
	"use-node-feature-api": {"USE_NODE_FEATURE_API", "true"},
	"namespace":            {"NAMESPACE", ""},
	"node-name":            {"NODE_NAME", ""},
}

// discovery labels the node as the real one does: by the NodeFeature API, unless it is told otherwise.
func discovery(arguments []string) int {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	for again := true; again; {
		flags, err := readFlags(arguments, discoveryFlags)
		if err == nil {
			err = discover(flags)
		}
		if err != nil {
			klog.Info("Exiting")
			klog.Error(err)
			return 1
		}
		got := <-signals
		again = got == syscall.SIGHUP
		if again {
			klog.Info("Received SIGHUP, restarting.")
		} else {
			klog.Infof("Received signal %v, shutting down.", got)
			if !truth(flags["use-node-feature-api"]) {
				_ = os.Remove(flags["output-file"])
			}
		}
	}
	klog.Info("Exiting")
	return 0
}

func discover(flags map[string]string) error {
	klog.Info("Loading configuration.")
	if err := fromFile(flags); err != nil {
		return fmt.Errorf("unable to load config: unable to finalize config: %v", err)
	}
	if !hasLibraries() && truth(flags["fail-on-init-error"]) {
		return fmt.Errorf("failed to create resource manager: unsupported strategy auto")
	}
	labels := []string{
		fmt.Sprintf("nvidia.com/gpu.count=%d", len(gpus())),
		"nvidia.com/gpu.machine=standin",
	}
	if !truth(flags["use-node-feature-api"]) {
		klog.Infof("Writing labels to output file %v", flags["output-file"])
		beside := filepath.Join(filepath.Dir(flags["output-file"]), ".gfd-standin")
		if err := os.WriteFile(beside, []byte(strings.Join(labels, "\n")+"\n"), 0o644); err != nil {
			return fmt.Errorf("error atomically writing file '%s': %w", flags["output-file"], err)
		}
		return os.Rename(beside, flags["output-file"])
	}
	settings, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("failed to create clientsets: create client configuration: "+
			"create in-cluster client configuration: %w", err)
	}
	client, err := kubernetes.NewForConfig(settings)
	if err != nil {
		return fmt.Errorf("failed to create clientsets: create core client: %w", err)
	}
	return publish(client, flags)
}

// fromFile reads what the configuration file says and no variable does.
func fromFile(flags map[string]string) error {
	if flags["config-file"] == "" {
		return nil
	}
	text, err := os.ReadFile(flags["config-file"])
	if err != nil {
		return fmt.Errorf("unable to parse config file: error opening config file: %v", err)
	}
	var read struct {
		Flags struct {
			UseNodeFeatureAPI *bool `json:"useNodeFeatureAPI"`
		} `json:"flags"`
	}
	if err := yaml.Unmarshal(text, &read); err != nil {
		return fmt.Errorf("unable to parse config file: unmarshal error: %v", err)
	}
	if value := read.Flags.UseNodeFeatureAPI; value != nil && os.Getenv("USE_NODE_FEATURE_API") == "" {
		flags["use-node-feature-api"] = fmt.Sprint(*value)
	}
	return nil
}

func publish(client kubernetes.Interface, flags map[string]string) error {
	name := "nvidia-features-for-" + flags["node-name"]
	path := "/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/" + flags["namespace"] + "/nodefeatures"
	ask := client.CoreV1().RESTClient()
	err := ask.Get().AbsPath(path + "/" + name).Do(context.TODO()).Error()
	if err != nil && !errors.IsNotFound(err) {
		return fmt.Errorf("failed to get NodeFeature object: %w", err)
	}
	if err == nil {
		return nil
	}
	klog.Infof("creating NodeFeature object %s", name)
	body := fmt.Sprintf(`{"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeature", "metadata": `+
		`{"name": %q, "labels": {"nfd.node.kubernetes.io/node-name": %q}}, `+
		`"spec": {"features": {"flags": {}, "attributes": {}, "instances": {}}, `+
		`"labels": {"nvidia.com/gpu.count": "%d"}}}`, name, flags["node-name"], len(gpus()))
	err = ask.Post().AbsPath(path).SetHeader("Content-Type", "application/json").
		Body([]byte(body)).Do(context.TODO()).Error()
	if err != nil {
		return fmt.Errorf("failed to create NodeFeature object %q: %w", name, err)
	}
	return nil
}
