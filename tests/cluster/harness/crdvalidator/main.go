// Command crdvalidator judges a CustomResourceDefinition, and objects of its kind, as the API server of one
// Kubernetes version does: with that version's own validation, without an API server.
//
// Its argument is the file of the CRD, as JSON. It prints one JSON list of sentences for the CRD. Then it
// reads one JSON object a line, {"new": ..., "old": ..., "status": bool}, and answers each with one such
// list: a create where there is no old object, else an update, of the status alone if "status" is true.
//
// Not covered: unknown fields (the API server refuses them while it decodes), admission, pruning.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	// Zones are checked by this program's own data, not by those of the machine.
	_ "time/tzdata"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json" // as the API server: whole numbers stay whole
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

type request struct {
	New    map[string]any `json:"new"`
	Old    map[string]any `json:"old"`
	Status bool           `json:"status"`
}

func main() {
	crd := read(os.Args[1])
	answer(crdvalidation.ValidateCustomResourceDefinition(context.Background(), crd))
	judge := newJudge(crd)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var asked request
		must(json.Unmarshal(lines.Bytes(), &asked))
		answer(judge.of(asked))
	}
	must(lines.Err())
}

func read(path string) *apiextensions.CustomResourceDefinition {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	text, err := os.ReadFile(path)
	must(err)
	var versioned v1.CustomResourceDefinition
	must(json.Unmarshal(text, &versioned))
	scheme.Default(&versioned)
	var crd apiextensions.CustomResourceDefinition
	must(scheme.Convert(&versioned, &crd, nil))
	crd.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
	return &crd
}

type judge struct {
	shape  *structuralschema.Structural
	main   rest.RESTCreateUpdateStrategy
	status rest.RESTUpdateStrategy
}

func newJudge(crd *apiextensions.CustomResourceDefinition) judge {
	version := crd.Spec.Versions[0].Name
	whole, err := apiextensions.GetSchemaForVersion(crd, version)
	must(err)
	shape, err := structuralschema.NewStructural(whole.OpenAPIV3Schema)
	must(err)
	objects, _, err := validation.NewSchemaValidator(whole.OpenAPIV3Schema)
	must(err)
	part := whole.OpenAPIV3Schema.Properties["status"]
	statuses, _, err := validation.NewSchemaValidator(&part)
	must(err)
	kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind}
	strategy := customresource.NewStrategy(
		nil, true, kind, objects, statuses, shape, &apiextensions.CustomResourceSubresourceStatus{}, nil, nil)
	return judge{shape: shape, main: strategy, status: customresource.NewStatusStrategy(strategy)}
}

func (j judge) of(asked request) field.ErrorList {
	ctx := context.Background()
	object := j.stored(asked.New)
	if asked.Old == nil {
		return j.main.Validate(ctx, object)
	}
	if asked.Status {
		return j.status.ValidateUpdate(ctx, object, j.stored(asked.Old))
	}
	return j.main.ValidateUpdate(ctx, object, j.stored(asked.Old))
}

// stored is the object with the defaults, and without the nulls, that the API server stores.
func (j judge) stored(content map[string]any) *unstructured.Unstructured {
	defaulting.PruneNonNullableNullsWithoutDefaults(content, j.shape)
	defaulting.Default(content, j.shape)
	return &unstructured.Unstructured{Object: content}
}

func answer(errors field.ErrorList) {
	sentences := []string{}
	for _, each := range errors {
		sentences = append(sentences, each.Error())
	}
	text, err := json.Marshal(sentences)
	must(err)
	fmt.Println(string(text))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
