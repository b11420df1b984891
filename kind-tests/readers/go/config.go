package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// The fields of the prober's file, with the types that decide what the decoder makes of a scalar. The last three are ours.
type proberConfig struct {
	KubeConfigSecretName        string           `json:"kubeConfigSecretName"`
	ProbeInterval               *metav1.Duration `json:"probeInterval"`
	InitialDelay                *metav1.Duration `json:"initialDelay"`
	ProbeTimeout                *metav1.Duration `json:"probeTimeout"`
	BackoffJitterFactor         *exact           `json:"backoffJitterFactor"`
	KCMNodeMonitorGraceDuration *metav1.Duration `json:"kcmNodeMonitorGraceDuration"`
	NodeLeaseFailureFraction    *exact           `json:"nodeLeaseFailureFraction"`
	DependentResourceInfos      []dependent      `json:"dependentResourceInfos"`
	ScaleUpStabilization        *metav1.Duration `json:"scaleUpStabilization"`
	RestoreOnlyHeldDown         *bool            `json:"restoreOnlyHeldDown"`
	StandbyProtects             *bool            `json:"standbyProtects"`
}

type dependent struct {
	Ref       *reference `json:"ref"`
	Optional  bool       `json:"optional"`
	ScaleUp   *scale     `json:"scaleUp"`
	ScaleDown *scale     `json:"scaleDown"`
}

type reference struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	APIVersion string `json:"apiVersion"`
}

type scale struct {
	Level        int              `json:"level"`
	InitialDelay *metav1.Duration `json:"initialDelay"`
	Timeout      *metav1.Duration `json:"timeout"`
}

// exact is a number that is written to the last bit.
type exact float64

func (number exact) MarshalText() ([]byte, error) {
	return strconv.AppendUint(nil, math.Float64bits(float64(number)), 16), nil
}

// or puts the default where nothing is given.
func or[T any](given **T, otherwise T) {
	if *given == nil {
		*given = &otherwise
	}
}

func seconds(number time.Duration) metav1.Duration {
	return metav1.Duration{Duration: number * time.Second}
}

// prober reads a file as rules 15 to 23 say: coercion, defaults, then the few checks that there are.
func prober(text string) (proberConfig, error) {
	var config proberConfig
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		return config, err
	}
	or(&config.ProbeInterval, seconds(10))
	or(&config.InitialDelay, seconds(30))
	or(&config.ProbeTimeout, seconds(30))
	or(&config.BackoffJitterFactor, 0.2)
	or(&config.KCMNodeMonitorGraceDuration, seconds(40))
	or(&config.NodeLeaseFailureFraction, 0.6)
	or(&config.ScaleUpStabilization, seconds(0))
	or(&config.RestoreOnlyHeldDown, false)
	or(&config.StandbyProtects, true)
	switch {
	case strings.TrimSpace(config.KubeConfigSecretName) == "":
		return config, errors.New("kubeConfigSecretName is blank")
	case config.KCMNodeMonitorGraceDuration.Duration == 0:
		return config, errors.New("kcmNodeMonitorGraceDuration is zero")
	case len(config.DependentResourceInfos) == 0:
		return config, errors.New("dependentResourceInfos is empty")
	}
	for index, entry := range config.DependentResourceInfos {
		switch {
		case entry.Ref == nil:
			return config, fmt.Errorf("%d: no ref, where the reference crashes", index)
		case strings.Count(entry.Ref.APIVersion, "/") > 1:
			return config, fmt.Errorf("%d: apiVersion has two slashes", index)
		case entry.ScaleUp == nil || entry.ScaleDown == nil:
			return config, fmt.Errorf("%d: scaleUp or scaleDown is missing", index)
		}
		for _, info := range []*scale{entry.ScaleUp, entry.ScaleDown} {
			or(&info.InitialDelay, seconds(0))
			or(&info.Timeout, seconds(30))
		}
	}
	return config, nil
}

type weederConfig struct {
	WatchDuration                 *metav1.Duration     `json:"watchDuration"`
	ServicesAndDependantSelectors map[string]selectors `json:"servicesAndDependantSelectors"`
	MaxDeletionsPerOwner          *int                 `json:"maxDeletionsPerOwner"`
}

type selectors struct {
	PodSelectors []*metav1.LabelSelector `json:"podSelectors"`
}

// weeder reads a file as rule 26 says, and tells for each Service and selector which of the pods are selected.
func weeder(asked textAndPods) (any, error) {
	var config weederConfig
	if err := yaml.Unmarshal([]byte(asked.Text), &config); err != nil {
		return nil, err
	}
	if len(config.ServicesAndDependantSelectors) == 0 {
		return nil, errors.New("servicesAndDependantSelectors is empty")
	}
	or(&config.WatchDuration, seconds(5*60))
	services := map[string][]string{}
	for name, service := range config.ServicesAndDependantSelectors {
		if len(service.PodSelectors) == 0 {
			return nil, fmt.Errorf("%s: podSelectors is empty", name)
		}
		for _, selector := range service.PodSelectors {
			selector, err := metav1.LabelSelectorAsSelector(selector)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			services[name] = append(services[name], matches(selector, asked.Pods))
		}
	}
	return map[string]any{
		"watchDuration":        config.WatchDuration,
		"maxDeletionsPerOwner": config.MaxDeletionsPerOwner,
		"services":             services,
	}, nil
}
