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
	"syscall"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// managerFlags are the real configuration manager's.
var managerFlags = map[string][2]string{
	"oneshot":             {"ONESHOT", "false"},
	"kubeconfig":          {"KUBECONFIG", ""},
	"node-name":           {"NODE_NAME", ""},
	"node-label":          {"NODE_LABEL", "nvidia.com/device-plugin.config"},
	"config-file-srcdir":  {"CONFIG_FILE_SRCDIR", ""},
	"config-file-dst":     {"CONFIG_FILE_DST", ""},
	"default-config":      {"DEFAULT_CONFIG", ""},
	"fallback-strategies": {"FALLBACK_STRATEGIES", ""},
	"send-signal":         {"SEND_SIGNAL", "true"},
	"signal":              {"SIGNAL", "1"},
	"process-to-signal":   {"PROCESS_TO_SIGNAL", "nvidia-device-plugin"},
}

// configManager links the configuration that the node's label names to where the plugin reads it.
func configManager(arguments []string) int {
	flags, err := readFlags(arguments, managerFlags)
	if err == nil {
		err = manage(flags)
	}
	if err != nil {
		klog.Errorf("Error: %v", err)
		return 1
	}
	return 0
}

func manage(flags map[string]string) error {
	for _, name := range []string{"node-name", "node-label", "config-file-srcdir", "config-file-dst"} {
		if flags[name] == "" {
			return fmt.Errorf("invalid <%s>: must not be empty string", name)
		}
	}
	settings, err := clientcmd.BuildConfigFromFlags("", flags["kubeconfig"])
	if err != nil {
		return fmt.Errorf("error building kubernetes clientcmd config: %s", err)
	}
	client, err := kubernetes.NewForConfig(settings)
	if err != nil {
		return fmt.Errorf("error building kubernetes clientset from config: %s", err)
	}
	label := flags["node-label"]
	labels := follow(client, flags["node-name"], label)
	klog.Infof("Waiting for change to '%s' label", label)
	for now := range labels {
		klog.Infof("Label change detected: %s=%s", label, now)
		if err := update(flags, now); err != nil || truth(flags["oneshot"]) {
			return err
		}
		klog.Infof("Waiting for change to '%s' label", label)
	}
	return nil
}

// follow gives the label's value now and at each change; it needs the rights that the real one needs.
func follow(client kubernetes.Interface, name string, label string) <-chan string {
	values := make(chan string, 16)
	value := func(object interface{}) string { return object.(*core.Node).Labels[label] }
	nodes := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "nodes", core.NamespaceAll,
		fields.OneTermEqualSelector("metadata.name", name))
	_, informer := cache.NewInformer(nodes, &core.Node{}, 0, cache.ResourceEventHandlerFuncs{
		AddFunc: func(object interface{}) { values <- value(object) },
		UpdateFunc: func(before, after interface{}) {
			if value(before) != value(after) {
				values <- value(after)
			}
		},
		DeleteFunc: func(interface{}) { values <- "" },
	})
	go informer.Run(make(chan struct{}))
	return values
}

func update(flags map[string]string, wished string) error {
	name, err := choose(flags, wished)
	if err != nil {
		return err
	}
	klog.Infof("Updating to config: %s", name)
	source, target := "/dev/null", flags["config-file-dst"]
	if name != "" {
		source = filepath.Join(flags["config-file-srcdir"], name)
	}
	if before, err := os.Readlink(target); err == nil && before == source {
		klog.Info("Already configured. Skipping update...")
		return nil
	}
	if err := os.Remove(target); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("error removing existing config: %v", err)
	}
	if err := os.Symlink(source, target); err != nil {
		return fmt.Errorf("error creating symlink: %v", err)
	}
	klog.Infof("Successfully updated to config: %s", name)
	if !truth(flags["send-signal"]) {
		return nil
	}
	number, err := strconv.Atoi(flags["signal"])
	if err != nil {
		return fmt.Errorf("invalid <signal>: %v", err)
	}
	klog.Infof("Sending signal '%s' to '%s'", syscall.Signal(number), flags["process-to-signal"])
	if err := tell(flags["process-to-signal"], syscall.Signal(number)); err != nil {
		return err
	}
	klog.Info("Successfully sent signal")
	return nil
}

func choose(flags map[string]string, wished string) (string, error) {
	entries, err := os.ReadDir(flags["config-file-srcdir"])
	if err != nil {
		return "", fmt.Errorf("error getting list of configuration files: %v", err)
	}
	there := map[string]bool{}
	var names []string
	for _, entry := range entries {
		if !entry.IsDir() && !strings.HasPrefix(entry.Name(), "..") {
			there[entry.Name()] = true
			names = append(names, entry.Name())
		}
	}
	sort.Strings(names)
	if wished == "" && flags["default-config"] != "" {
		klog.Infof("No value set. Selecting default name: %v", flags["default-config"])
		wished = flags["default-config"]
	}
	if wished != "" {
		if !there[wished] {
			return "", fmt.Errorf("specified config %v does not exist", wished)
		}
		return wished, nil
	}
	strategies := strings.Split(flags["fallback-strategies"], ",")
	klog.Infof("No value set and no default set. Attempting fallback strategies: %v", strategies)
	for _, strategy := range strategies {
		switch {
		case strategy == "named" && there["default"]:
			return "default", nil
		case strategy == "single" && len(names) == 1:
			return names[0], nil
		case strategy == "empty":
			return "", nil
		}
	}
	return "", fmt.Errorf("no config was set, no default was provided, and all fallbacks failed")
}

// tell finds the process by the first word of its command line, as the real one does.
func tell(name string, number syscall.Signal) error {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if strings.SplitN(string(text), "\x00", 2)[0] == name {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				return err
			}
			return syscall.Kill(pid, number)
		}
	}
	return fmt.Errorf("error finding pid: no process found")
}
