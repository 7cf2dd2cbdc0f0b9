// Command controlplane is all of Kubernetes that a test needs, in one static binary: its first argument
// names the component to become, the rest are that component's own flags. Seven binaries would compile
// and hold what the components share seven times.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	// kube-apiserver and the controller manager carry the zone data; without it they know no time zone
	// on a machine that has none.
	_ "time/tzdata"

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	name, arguments := component(os.Args)
	run, known := components[name]
	if !known {
		fmt.Fprintf(os.Stderr, "unknown component %q; one of: %s\n", name, strings.Join(names(), ", "))
		os.Exit(2)
	}
	// Cobra, etcd and kubectl's plugin look-up all read os.Args themselves: with the component still in
	// front they would take it for a sub-command.
	os.Args = append([]string{name}, arguments...)
	os.Exit(run())
}

// component finds the name in the program's own file name (bin/kubectl is a symbolic link to this binary)
// or, failing that, in the first argument.
func component(arguments []string) (string, []string) {
	linked := filepath.Base(arguments[0])
	if _, known := components[linked]; known {
		return linked, arguments[1:]
	}
	if len(arguments) < 2 {
		return "", nil
	}
	return arguments[1], arguments[2:]
}

var components = map[string]func() int{
	"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kube-proxy":              func() int { return cli.Run(proxy.NewProxyCommand()) },
	"kubelet":                 func() int { return cli.Run(kubelet.NewKubeletCommand(context.Background())) },
	"kubectl":                 runKubectl,
}

func runKubectl() int {
	// kubectl logs while its commands are still being put together, before the flags are read: without
	// this `kubectl -v 8` would be silent about plugins and the preference file.
	if _, err := logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err) // prints the error in kubectl's own words and exits with its code
	}
	return 0
}

func names() []string {
	all := make([]string, 0, len(components))
	for name := range components {
		all = append(all, name)
	}
	sort.Strings(all)
	return all
}
