// Command ingress-guard serves the mutating and the validating webhook.
package main

import (
	"flag"
	"os"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"example.com/ingress-guard/handlers"
)

func main() {
	var options handlers.Options
	flag.StringVar(&options.Host, "host", "", "address to listen on (default: all)")
	flag.IntVar(&options.Port, "port", 9443, "port to listen on")
	flag.StringVar(&options.CertDir, "cert-dir", "/certs", "folder with tls.crt and tls.key")
	flag.StringVar(&options.Domain, "domain", "example.com", "domain of all hosts")
	flag.DurationVar(&options.Drain, "drain", 5*time.Second, "how long to serve after SIGTERM")
	flag.Parse()
	log.SetLogger(zap.New())
	server, err := handlers.NewServer(options)
	if err == nil {
		err = server.Start(signals.SetupSignalHandler())
	}
	if err != nil {
		log.Log.Error(err, "serve")
		os.Exit(1)
	}
}
