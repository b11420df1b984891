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

// The fields of the prober's file, with the types that decide what the decoder makes of a scalar. The last two are ours.
type proberConfig struct {
	KubeConfigSecretName        string           `json:"kubeConfigSecretName"`
	ProbeInterval               *metav1.Duration `json:"probeInterval"`
	InitialDelay                *metav1.Duration `json:"initialDelay"`
	ProbeTimeout                *metav1.Duration `json:"probeTimeout"`
	BackoffJitterFactor         *float64         `json:"backoffJitterFactor"`
	KCMNodeMonitorGraceDuration *metav1.Duration `json:"kcmNodeMonitorGraceDuration"`
	NodeLeaseFailureFraction    *float64         `json:"nodeLeaseFailureFraction"`
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

// nanos is a duration as a number, or the default for one that is not given.
func nanos(given *metav1.Duration, otherwise time.Duration) int64 {
	if given == nil {
		return otherwise.Nanoseconds()
	}
	return given.Nanoseconds()
}

// bits is a number to the last bit, or the default for one that is not given.
func bits(given *float64, otherwise float64) string {
	if given == nil {
		given = &otherwise
	}
	return strconv.FormatUint(math.Float64bits(*given), 16)
}

// prober reads a file as rules 15 to 23 say: coercion, defaults, then the few checks that there are.
func prober(text string) (any, error) {
	var config proberConfig
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		return nil, err
	}
	var problems []error
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if strings.TrimSpace(config.KubeConfigSecretName) == "" {
		refuse("kubeConfigSecretName is blank")
	}
	if nanos(config.KCMNodeMonitorGraceDuration, 1) == 0 {
		refuse("kcmNodeMonitorGraceDuration is zero")
	}
	if len(config.DependentResourceInfos) == 0 {
		refuse("dependentResourceInfos is empty")
	}
	dependents := []any{}
	for index, entry := range config.DependentResourceInfos {
		if entry.Ref == nil {
			refuse("%d: no ref, where the reference crashes", index)
			continue
		}
		if strings.Count(entry.Ref.APIVersion, "/") > 1 {
			refuse("%d: apiVersion has two slashes", index)
		}
		if entry.ScaleUp == nil || entry.ScaleDown == nil {
			refuse("%d: scaleUp or scaleDown is missing", index)
			continue
		}
		dependents = append(dependents, map[string]any{
			"kind": entry.Ref.Kind, "name": entry.Ref.Name, "apiVersion": entry.Ref.APIVersion, "optional": entry.Optional,
			"scaleUp": scaled(entry.ScaleUp), "scaleDown": scaled(entry.ScaleDown),
		})
	}
	value := map[string]any{
		"kubeConfigSecretName":        config.KubeConfigSecretName,
		"probeInterval":               nanos(config.ProbeInterval, 10*time.Second),
		"initialDelay":                nanos(config.InitialDelay, 30*time.Second),
		"probeTimeout":                nanos(config.ProbeTimeout, 30*time.Second),
		"backoffJitterFactor":         bits(config.BackoffJitterFactor, 0.2),
		"kcmNodeMonitorGraceDuration": nanos(config.KCMNodeMonitorGraceDuration, 40*time.Second),
		"nodeLeaseFailureFraction":    bits(config.NodeLeaseFailureFraction, 0.6),
		"scaleUpStabilization":        nanos(config.ScaleUpStabilization, 0),
		"restoreOnlyHeldDown":         config.RestoreOnlyHeldDown != nil && *config.RestoreOnlyHeldDown,
		"standbyProtects":             config.StandbyProtects == nil || *config.StandbyProtects,
		"dependents":                  dependents,
	}
	return value, errors.Join(problems...)
}

func scaled(info *scale) any {
	return map[string]any{
		"level":        info.Level,
		"initialDelay": nanos(info.InitialDelay, 0),
		"timeout":      nanos(info.Timeout, 30*time.Second),
	}
}

type weederConfig struct {
	WatchDuration                 *metav1.Duration     `json:"watchDuration"`
	ServicesAndDependantSelectors map[string]selectors `json:"servicesAndDependantSelectors"`
	MaxDeletionsPerOwner          *int                 `json:"maxDeletionsPerOwner"`
}

type selectors struct {
	PodSelectors []*metav1.LabelSelector `json:"podSelectors"`
}

// weederQuestion is a file and the labels of pods.
type weederQuestion struct {
	Text string              `json:"text"`
	Pods []map[string]string `json:"pods"`
}

// weeder reads a file as rule 26 says, and tells for each Service and selector which of the pods are selected.
func weeder(asked weederQuestion) (any, error) {
	var config weederConfig
	if err := yaml.Unmarshal([]byte(asked.Text), &config); err != nil {
		return nil, err
	}
	if len(config.ServicesAndDependantSelectors) == 0 {
		return nil, errors.New("servicesAndDependantSelectors is empty")
	}
	services := map[string][]string{}
	for name, service := range config.ServicesAndDependantSelectors {
		if len(service.PodSelectors) == 0 {
			return nil, fmt.Errorf("%s: podSelectors is empty", name)
		}
		for _, selector := range service.PodSelectors {
			selected, err := selectedBy(selector, asked.Pods)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			services[name] = append(services[name], selected)
		}
	}
	return map[string]any{
		"watchDuration":        nanos(config.WatchDuration, 5*time.Minute),
		"maxDeletionsPerOwner": config.MaxDeletionsPerOwner,
		"services":             services,
	}, nil
}
