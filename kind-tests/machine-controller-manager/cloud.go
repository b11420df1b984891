package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
)

// cloud is a folder in which each file is a VM, named as its Machine and its Node. So VMs outlive this process, as real ones do.
type cloud struct {
	folder string
}

func (cloud cloud) vm(name string) string {
	return filepath.Join(cloud.folder, name)
}

// providerID is what the test bed's kubelets write into their Nodes.
func providerID(name string) string {
	return "local:///" + name
}

func (cloud cloud) CreateMachine(_ context.Context, request *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	name := request.Machine.Name
	if err := os.WriteFile(cloud.vm(name), nil, 0o644); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &driver.CreateMachineResponse{ProviderID: providerID(name), NodeName: name}, nil
}

func (cloud) InitializeMachine(context.Context, *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return nil, status.Error(codes.Unimplemented, "VMs need no initialization here")
}

func (cloud cloud) DeleteMachine(_ context.Context, request *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if err := os.Remove(cloud.vm(request.Machine.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &driver.DeleteMachineResponse{}, nil
}

func (cloud cloud) GetMachineStatus(_ context.Context, request *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	name := request.Machine.Name
	switch _, err := os.Stat(cloud.vm(name)); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, status.Error(codes.NotFound, "there is no VM "+name)
	case err != nil:
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &driver.GetMachineStatusResponse{ProviderID: providerID(name), NodeName: name}, nil
}

func (cloud cloud) ListMachines(context.Context, *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	files, err := os.ReadDir(cloud.folder)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	machines := make(map[string]string, len(files))
	for _, file := range files {
		machines[providerID(file.Name())] = file.Name()
	}
	return &driver.ListMachinesResponse{MachineList: machines}, nil
}

func (cloud) GetVolumeIDs(context.Context, *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return &driver.GetVolumeIDsResponse{}, nil
}
