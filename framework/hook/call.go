package hook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/processes"
)

// The versions of AdmissionReview that a Server reads.
const (
	reviewV1      = "admission.k8s.io/v1"
	reviewV1beta1 = "admission.k8s.io/v1beta1"
)

// largestCall limits the size of a call. An API server sends two objects of at most
// 3 MiB each (the limit of a request body in k8s.io/apiserver/pkg/server/config.go).
const largestCall = 8 << 20

// visit is one call that is being answered.
type visit struct {
	hook  Hook
	owner *owner
	call  *framework.Call
	reply Reply
	// request and body are the call as it was received, for an Upstream.
	request *http.Request
	body    []byte
	proxies *proxies
	writer  http.ResponseWriter
	ctx     context.Context //nolint:containedctx // it ends when the client disconnects or the Server is closed
}

// serve handles every HTTP request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	registered := s.find(r)
	if registered == nil && !strings.HasPrefix(r.URL.Path, "/"+s.secret+"/") {
		s.foreign.Add(1)
		w.Header().Set("Connection", "close")
	}
	if registered == nil {
		http.Error(w, "no hook is registered at "+r.URL.Path, http.StatusNotFound)
		return
	}
	call := &framework.Call{
		Webhook: registered.hook.Webhook, Phase: registered.hook.Phase, Observed: true,
		Header: r.Header, Query: r.URL.Query(), Method: r.Method, Path: strings.TrimPrefix(r.URL.Path, "/"+s.secret), Proto: r.Proto,
	}
	setConnection(r, call)
	if registered.hook.conversion != nil {
		registered.convert(w, r, call)
		return
	}
	if upstream := registered.hook.Upstream; upstream != nil {
		upstream.describe(call)
	}
	body, problem := read(r, call)
	of := registered.owner
	if registered.hook.Shared {
		of = s.userOf(registered, call)
	}
	v := &visit{
		hook: registered.hook, owner: of, call: call,
		request: r, body: body, proxies: &s.proxies, writer: w, ctx: r.Context(),
	}
	if problem == nil && of.excludes(call) {
		v.answer()
		return
	}
	of.record(call)
	if problem != nil {
		v.finish("refused: " + problem.Error())
		http.Error(w, problem.Error(), http.StatusBadRequest)
		return
	}
	if tokens := registered.hook.Tokens; tokens != nil {
		if code, why := tokens.refuse(call, s.urlOf(s.listener.Port, registered.path), time.Now()); code != 0 {
			v.send(answer{code: code, header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, body: []byte(why + "\n"), text: "refused: " + why})
			return
		}
	}
	v.reply = registered.nextReply()
	v.answer()
}

// read reads the body of a request and decodes it into call.Review. The error says why the
// request is neither an AdmissionReview nor an ImageReview.
func read(r *http.Request, call *framework.Call) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, largestCall))
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	call.RequestBytes = len(body)
	return body, decode(body, call)
}

// decode decodes the body of a request into call.Review.
func decode(body []byte, call *framework.Call) error {
	if len(body) == 0 {
		return errors.New("no body, want an AdmissionReview")
	}
	var review map[string]any
	if err := json.Unmarshal(body, &review); err != nil {
		return fmt.Errorf("decode body: %w", err)
	}
	call.Review = review
	version, kind := review["apiVersion"], review["kind"]
	if isImageReview(review) {
		return nil
	}
	if kind != "AdmissionReview" || version != reviewV1 && version != reviewV1beta1 {
		return fmt.Errorf("got apiVersion %v, kind %v; want AdmissionReview of %s or %s", version, kind, reviewV1, reviewV1beta1)
	}
	if call.Request() == nil {
		return errors.New("the AdmissionReview has no request")
	}
	return nil
}

// answer does what the Reply of the visit says.
func (v *visit) answer() {
	v.meanwhile()
	if v.reply.Barrier != "" {
		v.owner.waitAtBarrier(v.ctx, v.reply.Barrier, v.reply.BarrierSize)
	}
	v.delay()
	if v.ctx.Err() != nil {
		v.finish("no answer: the client disconnected")
		v.drop(false)
		return
	}
	if v.hook.Upstream != nil {
		v.answerByProxy()
		return
	}
	response, err := v.reply.answer(v.call.Review)
	if err != nil {
		v.owner.fail(fmt.Errorf("answer a call of webhook %s: %w", v.hook.Webhook, err))
		v.finish("no answer: " + err.Error())
		http.Error(v.writer, err.Error(), http.StatusInternalServerError)
		return
	}
	v.send(response)
}

// meanwhile calls the Meanwhile function of the Reply and records its error. A panic
// is an error too.
func (v *visit) meanwhile() {
	if v.reply.Meanwhile == nil {
		return
	}
	defer func() {
		if cause := recover(); cause != nil {
			v.owner.fail(fmt.Errorf("run meanwhile of webhook %s: panic: %v", v.hook.Webhook, cause))
		}
	}()
	if err := v.reply.Meanwhile(); err != nil {
		v.owner.fail(fmt.Errorf("run meanwhile of webhook %s: %w", v.hook.Webhook, err))
	}
}

// delay waits for the Delay of the Reply, or until the client disconnects or the owner
// is unregistered.
func (v *visit) delay() {
	if v.reply.Delay <= 0 {
		return
	}
	timer := time.NewTimer(time.Duration(v.reply.Delay))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-v.owner.gone:
	case <-v.ctx.Done():
	}
}

// drop closes the connection without sending more: with a TCP reset if reset is true.
func (v *visit) drop(reset bool) {
	connection, _, err := http.NewResponseController(v.writer).Hijack()
	if err != nil {
		return // only after an earlier hijack
	}
	if secured, ok := connection.(*tls.Conn); ok {
		connection = secured.NetConn() // without the alert of TLS
	}
	if accepted, ok := connection.(*processes.Conn); ok && reset {
		_ = accepted.SetLinger(0)
	}
	_ = connection.Close() // the client sees the end in any case
}
