// Copyright (c) 2026 kubegpu.nodes contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// serve keeps resources known to the kubelet until the program is told to end. What start returns is
// served until the kubelet starts again, and then made anew; with true it is tried again.
func serve(start func() ([]*server, bool, error)) int {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	for {
		socket := kubeletSocket()
		served, retry, err := start()
		if err != nil {
			klog.Errorf("error starting plugins: %v", err)
			return 1
		}
		again := waitForReason(signals, socket, retry)
		for _, one := range served {
			one.stop()
		}
		if !again {
			return 0
		}
	}
}

// kubeletSocket tells one socket of the kubelet from the next.
func kubeletSocket() uint64 {
	info, err := os.Stat(api.KubeletSocket)
	if err != nil {
		return 0
	}
	status, fine := info.Sys().(*syscall.Stat_t)
	if !fine {
		return 0
	}
	return status.Ino ^ uint64(status.Ctim.Nano())
}

func waitForReason(signals chan os.Signal, socket uint64, retry bool) bool {
	var timeout <-chan time.Time
	if retry {
		klog.Info("Failed to start one or more plugins. Retrying in 30s...")
		timeout = time.After(30 * time.Second)
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-timeout:
			return true
		case <-ticker.C:
			if now := kubeletSocket(); now != 0 && now != socket {
				klog.Infof("inotify: %s created, restarting.", api.KubeletSocket)
				return true
			}
		case got := <-signals:
			if got == syscall.SIGHUP {
				klog.Info("Received SIGHUP, restarting.")
				return true
			}
			klog.Infof("Received signal %q, shutting down.", got)
			return false
		}
	}
}

// startAll returns whether the kubelet knows all of them.
func startAll(serving []*server) bool {
	for _, one := range serving {
		if err := one.start(); err != nil {
			klog.Error("Could not contact Kubelet. Did you enable the device plugin feature gate?")
			return false
		}
	}
	return true
}

// server is one resource that the kubelet knows. allocate says what a container with some of its
// devices gets; held are the device files that are open while it serves. broken, where there is one,
// returns the devices that have broken and are not among the unhealthy ones.
type server struct {
	resource string
	socket   string
	ids      []string
	allocate func(ids []string) (*api.ContainerAllocateResponse, error)
	broken   func(unhealthy map[string]bool) []string
	held     []*os.File
	grpc     *grpc.Server
	done     chan struct{}
}

func (s *server) start() error {
	path := api.DevicePluginPath + s.socket
	_ = os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		klog.Infof("Could not start device plugin for '%s': %s", s.resource, err)
		return err
	}
	s.grpc, s.done = grpc.NewServer(), make(chan struct{})
	api.RegisterDevicePluginServer(s.grpc, s)
	klog.Infof("Starting GRPC server for '%s'", s.resource)
	go func() { _ = s.grpc.Serve(listener) }()
	klog.Infof("Starting to serve '%s' on %s", s.resource, path)
	if err := s.register(); err != nil {
		klog.Infof("Could not register device plugin: %s", err)
		return err
	}
	klog.Infof("Registered device plugin for '%s' with Kubelet", s.resource)
	return nil
}

func (s *server) register() error {
	patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", address)
	}
	connection, err := grpc.DialContext(patience, api.KubeletSocket,
		grpc.WithInsecure(), grpc.WithBlock(), grpc.WithContextDialer(dial))
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = api.NewRegistrationClient(connection).Register(patience, &api.RegisterRequest{
		Version:      api.Version,
		Endpoint:     s.socket,
		ResourceName: s.resource,
		Options:      &api.DevicePluginOptions{},
	})
	return err
}

func (s *server) stop() {
	for _, file := range s.held {
		_ = file.Close()
	}
	s.held = nil
	if s.grpc == nil {
		return
	}
	klog.Info("Stopping plugins.")
	klog.Infof("Stopping to serve '%s' on %s", s.resource, s.socket)
	close(s.done)
	s.grpc.Stop()
	_ = os.Remove(api.DevicePluginPath + s.socket)
	s.grpc = nil
}

// GetDevicePluginOptions has nothing to offer.
func (s *server) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// ListAndWatch tells the devices, and again when some of them have broken. As of the real plugin, they
// stay unhealthy until the plugin starts again.
func (s *server) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	unhealthy := map[string]bool{}
	for {
		var devices []*api.Device
		for _, id := range s.ids {
			health := api.Healthy
			if unhealthy[id] {
				health = api.Unhealthy
			}
			devices = append(devices, &api.Device{ID: id, Health: health})
		}
		if err := stream.Send(&api.ListAndWatchResponse{Devices: devices}); err != nil {
			return err
		}
		for told := len(unhealthy); told == len(unhealthy); {
			select {
			case <-s.done:
				return nil
			case <-stream.Context().Done():
				return nil
			case <-ticker.C:
				s.mark(unhealthy)
			}
		}
	}
}

// mark adds what has broken.
func (s *server) mark(unhealthy map[string]bool) {
	if s.broken == nil {
		return
	}
	for _, id := range s.broken(unhealthy) {
		klog.Infof("'%s' device marked unhealthy: %s", s.resource, id)
		unhealthy[id] = true
	}
}

// GetPreferredAllocation prefers nothing.
func (s *server) GetPreferredAllocation(context.Context, *api.PreferredAllocationRequest) (*api.PreferredAllocationResponse, error) {
	return &api.PreferredAllocationResponse{}, nil
}

// PreStartContainer has nothing to do.
func (s *server) PreStartContainer(context.Context, *api.PreStartContainerRequest) (*api.PreStartContainerResponse, error) {
	return &api.PreStartContainerResponse{}, nil
}

// Allocate answers for each container of a pod.
func (s *server) Allocate(_ context.Context, requests *api.AllocateRequest) (*api.AllocateResponse, error) {
	answers := &api.AllocateResponse{}
	for _, request := range requests.ContainerRequests {
		answer, err := s.allocate(request.DevicesIDs)
		if err != nil {
			return nil, err
		}
		answers.ContainerResponses = append(answers.ContainerResponses, answer)
	}
	return answers, nil
}
