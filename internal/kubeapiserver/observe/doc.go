// Package observe records the calls of the admission plugins of an API server. A Recorder
// decorates each plugin. It writes one audit annotation for each call: see package kubeapiserver.
//
// A decorated plugin behaves like the plugin itself. The Recorder copies the object before each
// mutating call, to find what the call changed.
package observe
