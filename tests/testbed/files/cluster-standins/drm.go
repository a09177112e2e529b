// Copyright (c) 2026 kubegpu.nodes contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// The flags of AMD's and Intel's plugins that this collection sets, with their defaults.
var (
	amdFlags = map[string][2]string{
		"logtostderr":              {"", "false"},
		"stderrthreshold":          {"", "ERROR"},
		"v":                        {"", "0"},
		"pulse":                    {"", "0"},
		"resource_naming_strategy": {"", "single"},
	}
	intelFlags = map[string][2]string{
		"v":                 {"", "0"},
		"shared-dev-num":    {"", "1"},
		"allocation-policy": {"", "none"},
		"enable-monitoring": {"", "false"},
		"allow-ids":         {"", ""},
	}
)

// card is a GPU that a driver of the kernel serves, as sysfs shows it.
type card struct {
	name      string
	device    string
	driver    string
	partition string
	// Its files in /dev.
	files []string
}

// cards returns the cards that such drivers serve; the pattern is that of their folders.
func cards(pattern string, drivers ...string) []card {
	folders, _ := filepath.Glob(pattern)
	sort.Strings(folders)
	var found []card
	for number, folder := range folders {
		driver, err := os.Readlink(filepath.Join(folder, "driver"))
		if err != nil || !contains(drivers, filepath.Base(driver)) {
			continue
		}
		one := card{name: fmt.Sprintf("card%d", number), driver: filepath.Base(driver)}
		one.device = firstLine(filepath.Join(folder, "device"))
		compute := firstLine(filepath.Join(folder, "current_compute_partition"))
		memory := firstLine(filepath.Join(folder, "current_memory_partition"))
		one.partition = strings.ToLower(compute + "_" + memory)
		files, _ := filepath.Glob(filepath.Join(folder, "drm", "*"))
		for _, file := range files {
			one.files = append(one.files, "/dev/dri/"+filepath.Base(file))
		}
		found = append(found, one)
	}
	return found
}

func contains(words []string, wanted string) bool {
	for _, word := range words {
		if word == wanted {
			return true
		}
	}
	return false
}

func firstLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// devicesFor returns the server of a resource whose containers get the files of their cards.
func devicesFor(resource, socket string, offered []card, replicas int, always ...string) *server {
	one := &server{resource: resource, socket: socket}
	files := map[string][]string{}
	for _, device := range offered {
		for replica := 0; replica < replicas; replica++ {
			id := fmt.Sprintf("%s-%d", device.name, replica)
			one.ids = append(one.ids, id)
			files[id] = device.files
		}
	}
	one.allocate = func(ids []string) (*api.ContainerAllocateResponse, error) {
		answer := &api.ContainerAllocateResponse{}
		seen := map[string]bool{}
		paths := always
		for _, id := range ids {
			if _, known := files[id]; !known {
				return nil, fmt.Errorf("%s has no device %s", resource, id)
			}
			paths = append(append([]string{}, paths...), files[id]...)
		}
		for _, path := range paths {
			if !seen[path] {
				seen[path] = true
				answer.Devices = append(answer.Devices, &api.DeviceSpec{
					HostPath: path, ContainerPath: path, Permissions: "rw"})
			}
		}
		return answer, nil
	}
	return one
}

// amdPlugin offers what amdgpu serves: one resource, or one for each way to divide a card.
func amdPlugin(arguments []string) int {
	flags, err := readFlags(arguments, amdFlags)
	if err != nil {
		klog.Error(err)
		return 2
	}
	return serve(func() ([]*server, bool, error) {
		byName := map[string][]card{}
		for _, one := range cards("/sys/bus/pci/devices/*", "amdgpu") {
			byName[one.partition] = append(byName[one.partition], one)
		}
		if flags["resource_naming_strategy"] == "single" && len(byName) > 1 {
			return nil, false, fmt.Errorf("Partitions of different styles across GPUs in a node is " +
				"not supported with single strategy. Please start device plugin with mixed strategy")
		}
		var serving []*server
		for partition, offered := range byName {
			name := "gpu"
			if flags["resource_naming_strategy"] == "mixed" && partition != "_" {
				name = partition
			}
			serving = append(serving, devicesFor("amd.com/"+name, "amd.com_"+name, offered, 1, "/dev/kfd"))
		}
		return serving, !startAll(serving), nil
	})
}

// intelPlugin offers what i915 and xe serve, each by its own name.
func intelPlugin(arguments []string) int {
	flags, err := readFlags(arguments, intelFlags)
	if err != nil {
		klog.Error(err)
		return 2
	}
	shared, err := strconv.Atoi(flags["shared-dev-num"])
	if err != nil || shared < 1 {
		klog.Error("The number of containers sharing the same GPU must greater than zero")
		return 1
	}
	return serve(func() ([]*server, bool, error) {
		var serving []*server
		for _, driver := range []string{"i915", "xe"} {
			var offered []card
			for _, one := range cards("/sys/class/drm/card*/device", driver) {
				allowed := strings.Split(flags["allow-ids"], ",")
				if flags["allow-ids"] == "" || contains(allowed, one.device) {
					offered = append(offered, one)
				}
			}
			if len(offered) > 0 {
				name := "gpu.intel.com/" + driver
				serving = append(serving, devicesFor(name, "gpu.intel.com-"+driver+".sock", offered, shared))
			}
		}
		return serving, !startAll(serving), nil
	})
}
