// Command webhook is a webhook that adds a label to ConfigMaps, and can be broken in many ways. It also checks sizes.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	address := flag.String("address", "", "host:port to listen on")
	certs := flag.String("certs", "", "folder with tls.crt and tls.key")
	label := flag.String("label", "guard", "value of the label")
	exit := flag.Int("exit", -1, "exit at once with this code")
	ignore := flag.Bool("ignore-sigterm", false, "do not end")
	fork := flag.String("fork", "", "start a child that writes both process IDs to this file and never ends")
	crash := flag.String("crash-on", "", "end when a ConfigMap of this name comes")
	late := flag.Duration("late", 0, "listen after this time")
	flag.Parse()
	fmt.Println("the webhook starts")
	if *exit >= 0 {
		fmt.Fprintln(os.Stderr, "flag --token is missing; password=hunter2, Authorization: Bearer abcdefghijklmnopqrst")
		os.Exit(*exit)
	}
	if err := administrate(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	if *ignore {
		signal.Ignore(syscall.SIGTERM)
	}
	if *fork != "" {
		child := exec.Command("/bin/sh", "-c", `trap "" TERM; echo $$ $PPID > "$0"; while :; do sleep 1000; done`, *fork)
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
	}
	http.HandleFunc("/mutate", func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &review)
		request, _ := review["request"].(map[string]any)
		if name := request["name"]; name == *crash {
			fmt.Fprintln(os.Stderr, "panic: a bug")
			os.Exit(2)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": review["apiVersion"], "kind": review["kind"],
			"response": map[string]any{
				"uid": request["uid"], "allowed": true, "patchType": "JSONPatch",
				"patch": []byte(`[{"op":"add","path":"/metadata/labels","value":{"by":"` + *label + `"}}]`),
			},
		})
	})
	http.HandleFunc("/validate", func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Request    struct {
				UID       string `json:"uid"`
				Namespace string `json:"namespace"`
				Object    struct {
					Spec struct {
						Size int `json:"size"`
					} `json:"spec"`
				} `json:"object"`
			} `json:"request"`
		}
		_ = json.NewDecoder(r.Body).Decode(&review)
		response := map[string]any{"uid": review.Request.UID, "allowed": true, "warnings": []string{"sizes are checked"}}
		if review.Request.Object.Spec.Size == 4 {
			response["allowed"] = false
			response["status"] = map[string]any{"code": 403, "message": review.Request.Namespace + " allows no size of 4"}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind, "response": response})
	})
	http.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	time.Sleep(*late)
	server := &http.Server{Addr: *address, ReadHeaderTimeout: time.Minute}
	err := server.ListenAndServeTLS(filepath.Join(*certs, "tls.crt"), filepath.Join(*certs, "tls.key"))
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// administrate prints the name of the namespace default, which it reads with KUBECONFIG.
func administrate() error {
	file := os.Getenv("KUBECONFIG")
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	response, err := client.Get(config.Host + "/api/v1/namespaces/kube-system")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	fmt.Printf("KUBECONFIG %s, %s: %s, in %s\n", file, info.Mode(), response.Status, os.Getenv("HOME"))
	return nil
}
