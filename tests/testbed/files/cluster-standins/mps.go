// Copyright (c) 2026 kubegpu.nodes contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"
)

// mpsControlDaemon has nothing to control, and waits as the real one does where no MPS is wished.
func mpsControlDaemon(arguments []string) int {
	klog.Infof("Starting NVIDIA MPS Control Daemon %s: %v", standinVersion, arguments)
	if len(arguments) > 0 && arguments[0] == "mount-shm" {
		return 0
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	klog.Infof("Received signal %q, shutting down.", <-signals)
	return 0
}
