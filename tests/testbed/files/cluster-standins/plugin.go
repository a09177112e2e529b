// Copyright (c) 2026 kubegpu.nodes contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"sigs.k8s.io/yaml"
)

const standinVersion = "v0.20.1 (kubegpu.nodes stand-in)"

// settings are the real plugin's, by the names of its configuration file.
type settings struct {
	MigStrategy        string   `json:"migStrategy"`
	FailOnInitError    bool     `json:"failOnInitError"`
	NvidiaDriverRoot   string   `json:"nvidiaDriverRoot"`
	GdsEnabled         bool     `json:"gdsEnabled"`
	MofedEnabled       bool     `json:"mofedEnabled"`
	PassDeviceSpecs    bool     `json:"passDeviceSpecs"`
	DeviceListStrategy []string `json:"deviceListStrategy"`
	DeviceIDStrategy   string   `json:"deviceIDStrategy"`
}

type shared struct {
	Name     string `json:"name"`
	Rename   string `json:"rename,omitempty"`
	Replicas int    `json:"replicas"`
}

type sharing struct {
	RenameByDefault            bool     `json:"renameByDefault,omitempty"`
	FailRequestsGreaterThanOne bool     `json:"failRequestsGreaterThanOne,omitempty"`
	Resources                  []shared `json:"resources,omitempty"`
}

// words takes one name or a list of names.
type words []string

func (w *words) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*w = strings.Split(one, ",")
		return nil
	}
	return json.Unmarshal(data, (*[]string)(w))
}

// file is the configuration file; what is not in it comes from flags and environment.
type file struct {
	Version string `json:"version"`
	Flags   struct {
		MigStrategy      *string `json:"migStrategy"`
		FailOnInitError  *bool   `json:"failOnInitError"`
		NvidiaDriverRoot *string `json:"nvidiaDriverRoot"`
		GdsEnabled       *bool   `json:"gdsEnabled"`
		MofedEnabled     *bool   `json:"mofedEnabled"`
		Plugin           struct {
			PassDeviceSpecs    *bool   `json:"passDeviceSpecs"`
			DeviceListStrategy *words  `json:"deviceListStrategy"`
			DeviceIDStrategy   *string `json:"deviceIDStrategy"`
		} `json:"plugin"`
	} `json:"flags"`
	Sharing struct {
		TimeSlicing *sharing `json:"timeSlicing"`
		Mps         *sharing `json:"mps"`
	} `json:"sharing"`
}

// flagNames are the real plugin's, with their environment variables and defaults.
var flagNames = map[string][2]string{
	"mig-strategy":                {"MIG_STRATEGY", "none"},
	"fail-on-init-error":          {"FAIL_ON_INIT_ERROR", "true"},
	"restart-on-device-unhealthy": {"RESTART_ON_DEVICE_UNHEALTHY", "false"},
	"nvidia-driver-root":          {"NVIDIA_DRIVER_ROOT", "/"},
	"dev-root":                    {"NVIDIA_DEV_ROOT", ""},
	"driver-root":                 {"DRIVER_ROOT", "/"},
	"pass-device-specs":           {"PASS_DEVICE_SPECS", "false"},
	"device-list-strategy":        {"DEVICE_LIST_STRATEGY", "envvar"},
	"device-id-strategy":          {"DEVICE_ID_STRATEGY", "uuid"},
	"gds-enabled":                 {"GDS_ENABLED", "false"},
	"gdrcopy-enabled":             {"GDRCOPY_ENABLED", "false"},
	"mofed-enabled":               {"MOFED_ENABLED", "false"},
	"kubelet-socket":              {"KUBELET_SOCKET", api.KubeletSocket},
	"config-file":                 {"CONFIG_FILE", ""},
	"cdi-annotation-prefix":       {"CDI_ANNOTATION_PREFIX", "cdi.k8s.io/"},
	"nvidia-cdi-hook-path":        {"NVIDIA_CDI_HOOK_PATH", "/usr/bin/nvidia-cdi-hook"},
	"nvidia-ctk-path":             {"NVIDIA_CTK_PATH", "/usr/bin/nvidia-ctk"},
	"container-driver-root":       {"CONTAINER_DRIVER_ROOT", "/driver-root"},
	"mps-root":                    {"MPS_ROOT", ""},
	"device-discovery-strategy":   {"DEVICE_DISCOVERY_STRATEGY", "auto"},
	"imex-channel-ids":            {"IMEX_CHANNEL_IDS", ""},
	"imex-required":               {"IMEX_REQUIRED", "false"},
}

func readFlags(arguments []string, names map[string][2]string) (map[string]string, error) {
	values := map[string]string{}
	for name, source := range names {
		values[name] = source[1]
		if value, there := os.LookupEnv(source[0]); there && value != "" {
			values[name] = value
		}
	}
	for index := 0; index < len(arguments); index++ {
		name := strings.TrimLeft(arguments[index], "-")
		value := ""
		if cut := strings.Index(name, "="); cut >= 0 {
			name, value = name[:cut], name[cut+1:]
		} else if source, known := names[name]; known && (source[1] == "true" || source[1] == "false") {
			value = "true"
		} else if index+1 < len(arguments) {
			index++
			value = arguments[index]
		}
		if _, known := names[name]; !known {
			return nil, fmt.Errorf("flag provided but not defined: -%s", name)
		}
		values[name] = value
	}
	return values, nil
}

func truth(text string) bool {
	value, _ := strconv.ParseBool(text)
	return value
}

type config struct {
	Version string   `json:"version"`
	Flags   settings `json:"flags"`
	Sharing struct {
		TimeSlicing sharing  `json:"timeSlicing"`
		Mps         *sharing `json:"mps,omitempty"`
	} `json:"sharing"`
}

func loadConfig(flags map[string]string) (*config, error) {
	made := &config{Version: "v1", Flags: settings{
		MigStrategy:        flags["mig-strategy"],
		FailOnInitError:    truth(flags["fail-on-init-error"]),
		NvidiaDriverRoot:   flags["nvidia-driver-root"],
		GdsEnabled:         truth(flags["gds-enabled"]),
		MofedEnabled:       truth(flags["mofed-enabled"]),
		PassDeviceSpecs:    truth(flags["pass-device-specs"]),
		DeviceListStrategy: strings.Split(flags["device-list-strategy"], ","),
		DeviceIDStrategy:   flags["device-id-strategy"],
	}}
	if path := flags["config-file"]; path != "" {
		if err := readFile(path, made); err != nil {
			return nil, fmt.Errorf("unable to finalize config: unable to parse config file: %v", err)
		}
	}
	for _, strategy := range made.Flags.DeviceListStrategy {
		switch strategy {
		case "envvar", "volume-mounts", "cdi-annotations", "cdi-cri":
		default:
			return nil, fmt.Errorf("unable to validate flags: invalid --device-list-strategy option: "+
				"invalid strategy: %v", strategy)
		}
	}
	if id := made.Flags.DeviceIDStrategy; id != "uuid" && id != "index" {
		return nil, fmt.Errorf("unable to validate flags: invalid --device-id-strategy option: %v", id)
	}
	if mig := made.Flags.MigStrategy; mig != "none" && mig != "single" && mig != "mixed" {
		return nil, fmt.Errorf("unable to validate flags: unknown MIG strategy: %v", mig)
	}
	if made.Sharing.Mps != nil && made.Flags.MigStrategy == "mixed" {
		return nil, fmt.Errorf("unable to validate flags: using --mig-strategy=mixed is not supported with MPS")
	}
	return made, nil
}

func readFile(path string, made *config) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("error opening config file: %v", err)
	}
	var read file
	if err := yaml.Unmarshal(text, &read); err != nil {
		return fmt.Errorf("unmarshal error: %v", err)
	}
	if read.Version != "v1" && len(strings.TrimSpace(string(text))) > 0 {
		return fmt.Errorf("unknown version: %v", read.Version)
	}
	flags, plugin := read.Flags, read.Flags.Plugin
	// What flags or environment say goes first in the real one too.
	text1 := func(variable string, target *string, value *string) {
		if value != nil && os.Getenv(variable) == "" {
			*target = *value
		}
	}
	truth1 := func(variable string, target *bool, value *bool) {
		if value != nil && os.Getenv(variable) == "" {
			*target = *value
		}
	}
	text1("MIG_STRATEGY", &made.Flags.MigStrategy, flags.MigStrategy)
	text1("NVIDIA_DRIVER_ROOT", &made.Flags.NvidiaDriverRoot, flags.NvidiaDriverRoot)
	text1("DEVICE_ID_STRATEGY", &made.Flags.DeviceIDStrategy, plugin.DeviceIDStrategy)
	truth1("FAIL_ON_INIT_ERROR", &made.Flags.FailOnInitError, flags.FailOnInitError)
	truth1("GDS_ENABLED", &made.Flags.GdsEnabled, flags.GdsEnabled)
	truth1("MOFED_ENABLED", &made.Flags.MofedEnabled, flags.MofedEnabled)
	truth1("PASS_DEVICE_SPECS", &made.Flags.PassDeviceSpecs, plugin.PassDeviceSpecs)
	if plugin.DeviceListStrategy != nil && os.Getenv("DEVICE_LIST_STRATEGY") == "" {
		made.Flags.DeviceListStrategy = *plugin.DeviceListStrategy
	}
	if read.Sharing.TimeSlicing != nil {
		made.Sharing.TimeSlicing = *read.Sharing.TimeSlicing
	}
	if read.Sharing.Mps != nil && len(read.Sharing.Mps.Resources) > 0 {
		if len(made.Sharing.TimeSlicing.Resources) > 0 {
			return fmt.Errorf("cannot specify both time-slicing and MPS")
		}
		made.Sharing.Mps = read.Sharing.Mps
	}
	for _, one := range append(made.Sharing.TimeSlicing.Resources, mpsResources(made)...) {
		if one.Replicas < 2 {
			return fmt.Errorf("unmarshal error: number of replicas must be >= 2")
		}
	}
	return nil
}

func mpsResources(made *config) []shared {
	if made.Sharing.Mps == nil {
		return nil
	}
	return made.Sharing.Mps.Resources
}

// devicePlugin runs until it is told to end.
func devicePlugin(arguments []string) int {
	flags, err := readFlags(arguments, flagNames)
	if err != nil {
		klog.Error(err)
		return 1
	}
	klog.Infof("Starting NVIDIA Device Plugin version %s", standinVersion)
	klog.Infof("Starting FS watcher for %s", api.DevicePluginPath)
	klog.Info("Starting OS watcher.")
	return serve(func() ([]*server, bool, error) { return startPlugin(flags) })
}

func startPlugin(flags map[string]string) ([]*server, bool, error) {
	klog.Info("Starting Plugins.")
	klog.Info("Loading configuration.")
	made, err := loadConfig(flags)
	if err != nil {
		return nil, false, fmt.Errorf("unable to load config: %v", err)
	}
	klog.Info("Updating config with default resource matching patterns.")
	text, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return nil, false, err
	}
	klog.Infof("\nRunning with config:\n%v", string(text))
	klog.Info("Retrieving plugins.")
	if !hasLibraries() {
		klog.Info("Detected non-NVML platform: could not load NVML library: libnvidia-ml.so.1: " +
			"cannot open shared object file: No such file or directory")
		klog.Info("Detected non-Tegra platform: /sys/devices/soc0/family file not found")
		klog.Error("Incompatible platform detected")
		klog.Error("If this is a GPU node, did you configure the NVIDIA Container Toolkit?")
		klog.Error("You can check the prerequisites at: " +
			"https://github.com/NVIDIA/k8s-device-plugin#prerequisites")
		klog.Error("You can learn how to set the runtime at: " +
			"https://github.com/NVIDIA/k8s-device-plugin#quick-start")
		klog.Error("If this is not a GPU node, you should set up a toleration or nodeSelector to " +
			"only deploy this plugin on GPU nodes")
		if made.Flags.FailOnInitError {
			return nil, false, fmt.Errorf("error creating plugin manager: platform detection failed")
		}
		klog.Info("No devices found. Waiting indefinitely.")
		return nil, false, nil
	}
	klog.Info("Detected NVML platform: found NVML library")
	klog.Info("Detected non-Tegra platform: /sys/devices/soc0/family file not found")
	offered, err := byResource(made.Flags.MigStrategy)
	if err != nil {
		return nil, false, fmt.Errorf("error getting plugins: unable to load resource managers to manage "+
			"plugin devices: error building device map: error building device map from config.resources: "+
			"invalid MIG configuration: %v", err)
	}
	var serving []*server
	for resource, devices := range offered {
		one := newServer(made, resource, devices)
		// The real one watches their health by NVML while it serves.
		if one.held, err = hold(devices); err != nil {
			return nil, false, err
		}
		serving = append(serving, one)
	}
	if len(serving) == 0 {
		klog.Info("No devices found. Waiting indefinitely.")
		return nil, false, nil
	}
	if !startAll(serving) {
		klog.Error("You can check the prerequisites at: " +
			"https://github.com/NVIDIA/k8s-device-plugin#prerequisites")
		klog.Error("You can learn how to set the runtime at: " +
			"https://github.com/NVIDIA/k8s-device-plugin#quick-start")
		return serving, true, nil
	}
	return serving, false, nil
}

const wholeGpu = "nvidia.com/gpu"

// byResource returns the devices by resource, as the strategy has it.
func byResource(strategy string) (map[string][]gpu, error) {
	found := map[string][]gpu{}
	divided, enabled := migs()
	if strategy == "single" && len(enabled) == 0 {
		klog.Info("No MIG devices found. Falling back to mig.strategy=none")
	}
	if strategy == "none" || len(enabled) == 0 {
		if all := gpus(); len(all) > 0 {
			found[wholeGpu] = all
		}
		return found, nil
	}
	profiles := map[string]bool{}
	parts := map[string]int{}
	for _, one := range divided {
		profiles[one.profile] = true
		parts[one.index]++
	}
	for _, one := range gpus() {
		switch {
		case !enabled[one.index] && strategy == "single":
			return nil, fmt.Errorf("all devices on the node must be configured with the same migEnabled value")
		case !enabled[one.index]:
			found[wholeGpu] = append(found[wholeGpu], one)
		case parts[one.index] == 0 && strategy == "single":
			return nil, fmt.Errorf("at least one device with migEnabled=true was not configured correctly: "+
				"device %s has no MIG devices configured", one.index)
		case parts[one.index] == 0:
			klog.Warningf("device %s has no MIG devices configured", one.index)
		}
	}
	if strategy == "single" && len(profiles) > 1 {
		return nil, fmt.Errorf("more than one MIG device type present on node")
	}
	for _, one := range divided {
		resource := wholeGpu
		if strategy == "mixed" {
			resource = "nvidia.com/mig-" + strings.ReplaceAll(one.profile, "+", ".")
		}
		found[resource] = append(found[resource], one.gpu)
	}
	return found, nil
}

// offer is what one resource of NVIDIA's plugin has, by the ids that the kubelet knows.
type offer struct {
	config  *config
	name    string
	sharing *sharing
	gpus    map[string]gpu
}

func newServer(made *config, resource string, devices []gpu) *server {
	one := &offer{config: made, name: resource, gpus: map[string]gpu{}}
	replicas := 1
	for _, how := range []*sharing{&made.Sharing.TimeSlicing, made.Sharing.Mps} {
		if how == nil {
			continue
		}
		for _, chosen := range how.Resources {
			if chosen.Name == resource {
				one.sharing, replicas = how, chosen.Replicas
				if how.RenameByDefault {
					one.name = resource + ".shared"
				}
			}
		}
	}
	var ids []string
	for _, device := range devices {
		for replica := 0; replica < replicas; replica++ {
			id := device.uuid
			if one.sharing != nil {
				id = fmt.Sprintf("%s::%d", device.uuid, replica)
			}
			one.gpus[id] = device
			ids = append(ids, id)
		}
	}
	socket := "nvidia-" + strings.TrimPrefix(one.name, "nvidia.com/") + ".sock"
	return &server{resource: one.name, socket: socket, ids: ids, allocate: one.allocate, broken: one.broken}
}

// xids is a file that a test puts into the plugin's container, with what NVML would tell the real one:
// "XID UUID" in each line.
const xids = "/tmp/standin-xids"

// broken returns the devices of GPUs with an Xid.
func (o *offer) broken(unhealthy map[string]bool) []string {
	text, err := os.ReadFile(xids)
	if err != nil {
		return nil
	}
	var found []string
	for _, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		if len(words) != 2 {
			continue
		}
		for id, device := range o.gpus {
			if device.uuid == words[1] && !unhealthy[id] {
				klog.Infof("XidCriticalError: Xid=%s on Device=%s; marking device as unhealthy.", words[0], id)
				found = append(found, id)
			}
		}
	}
	return found
}

// allocate tells the runtime by environment or by mounts which devices a container gets.
func (o *offer) allocate(ids []string) (*api.ContainerAllocateResponse, error) {
	if o.sharing != nil && o.sharing.FailRequestsGreaterThanOne && len(ids) > 1 {
		return nil, fmt.Errorf("request for '%v: %v' too large: maximum request size for shared "+
			"resources is 1", o.name, len(ids))
	}
	var names []string
	seen := map[string]bool{}
	for _, id := range ids {
		device, known := o.gpus[id]
		if !known {
			return nil, fmt.Errorf("invalid allocation request for '%s': unknown device: %s", o.name, id)
		}
		name := device.uuid
		if o.config.Flags.DeviceIDStrategy == "index" {
			name = device.index
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return o.answer(names), nil
}

func (o *offer) answer(names []string) *api.ContainerAllocateResponse {
	const root = "/var/run/nvidia-container-devices"
	answer := &api.ContainerAllocateResponse{Envs: map[string]string{}}
	for _, strategy := range o.config.Flags.DeviceListStrategy {
		switch strategy {
		case "envvar":
			answer.Envs["NVIDIA_VISIBLE_DEVICES"] = strings.Join(names, ",")
		case "volume-mounts":
			answer.Envs["NVIDIA_VISIBLE_DEVICES"] = root
			for _, name := range names {
				path := filepath.Join(root, name)
				answer.Mounts = append(answer.Mounts, &api.Mount{HostPath: "/dev/null", ContainerPath: path})
			}
		case "cdi-annotations", "cdi-cri":
			var devices []string
			for _, name := range names {
				devices = append(devices, "nvidia.com/gpu="+name)
			}
			answer.Annotations = map[string]string{
				"cdi.k8s.io/nvidia-device-plugin_standin": strings.Join(devices, ","),
			}
		}
	}
	if o.config.Flags.GdsEnabled {
		answer.Envs["NVIDIA_GDS"] = "enabled"
	}
	if o.config.Flags.MofedEnabled {
		answer.Envs["NVIDIA_MOFED"] = "enabled"
	}
	return answer
}
