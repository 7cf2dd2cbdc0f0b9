// Command cronjob-specs is Kubernetes' own end-to-end specs of its package test/e2e/apps, CronJob's among
// them, as they are: this file only parses the flags of the framework and starts ginkgo, as Kubernetes'
// e2e.test does. e2e.test itself holds the specs of all other packages too, and takes far longer to build.
package main

import (
	"flag"
	"os"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	_ "k8s.io/kubernetes/test/e2e/apps"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init" // after a failure: what the namespace holds
)

// outcome is what ginkgo asks of a *testing.T, which only `go test` can make.
type outcome struct{ failed bool }

func (o *outcome) Fail() { o.failed = true }

func main() {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	framework.AfterReadingAllFlags(&framework.TestContext)
	gomega.RegisterFailHandler(framework.Fail)
	suite, reporter := framework.CreateGinkgoConfig()
	var seen outcome
	ginkgo.RunSpecs(&seen, "apps", suite, reporter)
	if seen.failed {
		os.Exit(1)
	}
}
