package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializerjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// What an API server writes its answers with.
var (
	scheme       = newScheme()
	inJSON       = serializerjson.NewSerializerWithOptions(serializerjson.DefaultMetaFactory, scheme, scheme, serializerjson.SerializerOptions{})
	inProtobuf   = protobuf.NewSerializer(scheme, scheme)
	worker       = "worker.gardener.cloud/pool"
	notManaged   = "node.machine.sapcloud.io/not-managed-by-mcm"
	serializedAs = map[string]runtime.Serializer{"json": inJSON, "protobuf": inProtobuf}
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

// body is an answer of an API server.
type body struct {
	As    string `json:"as"`
	Bytes []byte `json:"bytes"`
}

// encode gives a list, which is asked for in JSON, as an API server would send it in either form, and what it holds.
func encode(list json.RawMessage) (any, error) {
	object, _, err := inJSON.Decode(list, nil, nil)
	if err != nil {
		return nil, err
	}
	var asJSON, asProtobuf bytes.Buffer
	if err := inJSON.Encode(object, &asJSON); err != nil {
		return nil, err
	}
	if err := inProtobuf.Encode(object, &asProtobuf); err != nil {
		return nil, err
	}
	held, err := records(object)
	return map[string]any{"json": asJSON.Bytes(), "protobuf": asProtobuf.Bytes(), "holds": held}, err
}

// decode gives what Go reads out of an answer.
func decode(body body) (any, error) {
	serializer := serializedAs[body.As]
	if serializer == nil {
		return nil, fmt.Errorf("as %q?", body.As)
	}
	object, _, err := serializer.Decode(body.Bytes, nil, nil)
	if err != nil {
		return nil, err
	}
	return records(object)
}

type held struct {
	Version  string `json:"version"`
	Continue string `json:"continue"`
	Items    []any  `json:"items"`
}

type leaseHeld struct {
	Name     string `json:"name"`
	Duration *int32 `json:"duration"`
	Renewed  *stamp `json:"renewed"`
}

type stamp struct {
	Seconds int64 `json:"seconds"`
	Nanos   int   `json:"nanos"`
	// Whether it is the zero time, which stands for none.
	Zero bool `json:"zero"`
}

type nodeHeld struct {
	Name       string      `json:"name"`
	Pool       *string     `json:"pool"`
	NotManaged bool        `json:"notManaged"`
	Conditions [][3]string `json:"conditions"`
}

// records are the parts of a list that a probe looks at.
func records(object runtime.Object) (held, error) {
	items := []any{}
	switch list := object.(type) {
	case *coordinationv1.LeaseList:
		for _, lease := range list.Items {
			record := leaseHeld{Name: lease.Name, Duration: lease.Spec.LeaseDurationSeconds}
			if renewed := lease.Spec.RenewTime; renewed != nil {
				record.Renewed = &stamp{Seconds: renewed.Unix(), Nanos: renewed.Nanosecond(), Zero: renewed.IsZero()}
			}
			items = append(items, record)
		}
		return held{list.ResourceVersion, list.Continue, items}, nil
	case *corev1.NodeList:
		for _, node := range list.Items {
			record := nodeHeld{Name: node.Name, Conditions: [][3]string{}}
			if pool, labelled := node.Labels[worker]; labelled {
				record.Pool = &pool
			}
			_, record.NotManaged = node.Annotations[notManaged]
			for _, condition := range node.Status.Conditions {
				record.Conditions = append(record.Conditions, [3]string{string(condition.Type), string(condition.Status), condition.Reason})
			}
			items = append(items, record)
		}
		return held{list.ResourceVersion, list.Continue, items}, nil
	}
	return held{}, fmt.Errorf("%T is not a list of leases or nodes", object)
}
