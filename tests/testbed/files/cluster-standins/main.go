// Copyright (c) 2026 kubegpu.nodes contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// STAND-INS for programs of the vendors' container images, for nodes without a chip. One program, which
// is what it is called as: NVIDIA's device plugin, its configuration manager, its MPS control daemon and
// GPU feature discovery, DCGM's exporter, the sample vectorAdd, or the device plugins of AMD and Intel.
//
// Whether there are GPUs of NVIDIA is told by the stand-in nvidia-container-runtime on the node: it puts
// the node's stand-in devices into the environment of a container that asks for them. Those of AMD and
// Intel are found in sysfs, where the node has stand-ins of them.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "nvidia-device-plugin":
		os.Exit(devicePlugin(os.Args[1:]))
	case "gpu-feature-discovery":
		os.Exit(discovery(os.Args[1:]))
	case "config-manager":
		os.Exit(configManager(os.Args[1:]))
	case "vectorAdd", "sample":
		os.Exit(vectorAdd())
	case "dcgm-exporter":
		os.Exit(dcgmExporter())
	case "mps-control-daemon":
		os.Exit(mpsControlDaemon(os.Args[1:]))
	case "k8s-device-plugin":
		os.Exit(amdPlugin(os.Args[1:]))
	case "intel_gpu_device_plugin":
		os.Exit(intelPlugin(os.Args[1:]))
	default:
		fmt.Fprintf(os.Stderr, "%s: not stood in for\n", name)
		os.Exit(2)
	}
}
