// Copyright (c) 2026 kubegpu.nodes contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"fmt"
	"os"
)

// vectorAdd says what NVIDIA's sample says.
func vectorAdd() int {
	fmt.Println("[Vector addition of 50000 elements]")
	trouble := ""
	switch {
	case !hasLibraries():
		trouble = "CUDA driver version is insufficient for CUDA runtime version"
	case len(gpus()) == 0:
		trouble = "no CUDA-capable device is detected"
	}
	if trouble != "" {
		fmt.Fprintf(os.Stderr, "Failed to allocate device vector A (error code %s)!\n", trouble)
		return 1
	}
	fmt.Println("Copy input data from the host memory to the CUDA device")
	fmt.Println("CUDA kernel launch with 196 blocks of 256 threads")
	fmt.Println("Copy output data from the CUDA device to the host memory")
	fmt.Println("Test PASSED")
	fmt.Println("Done")
	return 0
}
