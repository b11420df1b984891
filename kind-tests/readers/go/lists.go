package main

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializerjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// What an API server writes its answers with, and a client reads them.
var (
	scheme = runtime.NewScheme()
	forms  = map[string]runtime.Serializer{
		"json":     serializerjson.NewSerializerWithOptions(serializerjson.DefaultMetaFactory, scheme, scheme, serializerjson.SerializerOptions{}),
		"protobuf": protobuf.NewSerializer(scheme, scheme),
	}
)

func init() {
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(coordinationv1.AddToScheme(scheme))
}

// list reads a list in one form, and writes what it has read in each.
func list(in map[string][]byte) (map[string][]byte, error) {
	out := map[string][]byte{}
	for form, body := range in {
		object, _, err := forms[form].Decode(body, nil, nil)
		if err != nil {
			return nil, err
		}
		for form, serializer := range forms {
			if out[form], err = runtime.Encode(serializer, object); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
