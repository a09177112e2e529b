// Copyright (c) 2026 kubegpu.nodes contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"fmt"
	"os"
	"strings"
)

// The runtime's mark, and the GPUs that it gave: "INDEX UUID;INDEX UUID". Of GPUs with MIG enabled
// it gives the mode and the MIG devices: "INDEX enabled;INDEX UUID PROFILE".
const (
	runtimeMark = "KUBEGPU_STANDIN_RUNTIME"
	givenGpus   = "KUBEGPU_STANDIN_GPUS"
	givenMigs   = "KUBEGPU_STANDIN_MIGS"
	givenDriver = "KUBEGPU_STANDIN_DRIVER"
)

type gpu struct {
	index string
	uuid  string
}

// hasLibraries tells whether the runtime put the driver's libraries here, as the real one does where
// the container asks for any device.
func hasLibraries() bool {
	return os.Getenv(runtimeMark) == "nvidia" && os.Getenv(givenDriver) != ""
}

func gpus() []gpu {
	var found []gpu
	for _, one := range strings.Split(os.Getenv(givenGpus), ";") {
		words := strings.Fields(one)
		if len(words) == 2 {
			found = append(found, gpu{words[0], words[1]})
		}
	}
	return found
}

// mig is a MIG device; its index is that of its GPU.
type mig struct {
	gpu
	profile string
}

// migs returns the MIG devices, and the indexes of the GPUs with MIG enabled.
func migs() ([]mig, map[string]bool) {
	var found []mig
	enabled := map[string]bool{}
	for _, one := range strings.Split(os.Getenv(givenMigs), ";") {
		switch words := strings.Fields(one); len(words) {
		case 2:
			enabled[words[0]] = true
		case 3:
			found = append(found, mig{gpu{words[0], words[1]}, words[2]})
		}
	}
	return found, enabled
}

// hold opens the device files of these GPUs, as NVML does for as long as it is used. The real runtime
// puts the files into the container; here they are made.
func hold(devices []gpu) ([]*os.File, error) {
	var files []*os.File
	for _, device := range devices {
		file, err := os.OpenFile("/dev/nvidia"+device.index, os.O_RDONLY|os.O_CREATE, 0o666)
		if err != nil {
			return files, fmt.Errorf("failed to open the device of GPU %s: %w", device.index, err)
		}
		files = append(files, file)
	}
	return files, nil
}
