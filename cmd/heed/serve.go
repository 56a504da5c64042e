package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/task/serve"
)

// serveGrace is the time that a service has, after a signal, to answer the requests that it has accepted.
const serveGrace = 10 * time.Second

func newServe() *cobra.Command {
	var addr string
	var o serve.Options
	cmd := &cobra.Command{
		Use:   "serve DIR",
		Short: "Answer HTTP requests with a trained model",
		Long: `Answer HTTP requests with a trained model until SIGINT or SIGTERM. Then heed answers the requests that it
has accepted, for up to ten seconds, and exits with status 0.

  curl http://127.0.0.1:8080/predict -H 'Content-Type: application/json' \
       -d '{"input": ["gorgonia", "attention"], "top": 3}'
  curl -N http://127.0.0.1:8080/generate -H 'Content-Type: application/json' \
       -d '{"prompt": "To be", "tokens": 300, "temperature": 0.8}'    # for a text model

Clients of OpenAI's API work with the base URL http://127.0.0.1:8080/v1, any key, and the folder's name as
the model: /v1/models, /v1/chat/completions, /v1/completions and /v1/embeddings. Clients of rerankers have
/v1/rerank. Handler.OpenAI in package train/task/serve describes what they support.

In a browser, the address shows a page where you can try the model and see what it attends to.
/openapi.json describes all requests. /health answers while the service runs. Inputs that wait at the same
time are answered together. Requests and answers are JSON. The service refuses requests that are too large
or too slow, and requests beyond the limits below.

By default, only this machine can reach the service. If you choose another address with --addr, everyone
who can reach it can use the service: there are no passwords and no encryption.`,
		Example: `  heed serve runs/reverse
  heed serve models/smollm2
  heed serve runs/words --addr 127.0.0.1:0 --batch 64 --timeout 10s`,
		Args: takes("one folder", cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Time <= 0 {
				return usagef("--timeout must be above 0, got %v", o.Time)
			}
			if err := cmp.Or(atLeastOne(cmd.Flags(), "queue", "batch", "max-tokens", "sessions"), checkAddr("addr", addr)); err != nil {
				return err
			}
			return serveRun(cmd, args[0], addr, o)
		},
	}
	f := cmd.Flags()
	baseFlag(f)
	weightsFlag(f)
	thresholdFlag(f, &o.Threshold)
	languageFlags(f)
	f.StringVar(&addr, "addr", "127.0.0.1:8080", "host and port to listen on (port 0: a free one)")
	f.IntVar(&o.Queue, "queue", 1024, "maximum number of inputs waiting to be answered")
	f.IntVar(&o.Batch, "batch", 32, "maximum number of inputs answered together")
	f.IntVar(&o.MaxTokens, "max-tokens", 1024, "maximum number of tokens that a text model writes per request")
	f.IntVar(&o.Sessions, "sessions", 16, "maximum number of texts written at the same time")
	f.DurationVar(&o.Time, "timeout", time.Minute, "time limit of a request, such as 30s")
	return cmd
}

// serveRun serves the model in dir until cmd's context ends.
func serveRun(cmd *cobra.Command, dir, addr string, o serve.Options) error {
	collectOften(30)
	stdout := cmd.OutOrStdout()
	m, err := openModel(cmd, dir)
	if err != nil {
		return err
	}
	o.ErrorLog = log.New(writerFunc(func(b []byte) (int, error) { // for errors that clients don't get
		_, err := fmt.Fprint(cmd.ErrOrStderr(), "heed: ", text.Escape(string(b)))
		return len(b), err
	}), "", 0)
	o.MaxInputs = min(256, o.Queue)
	h, err := serve.New(m, o)
	if err != nil {
		return wrongFlag(err, nil)
	}
	l, err := listenOn("addr", addr)
	if err != nil {
		return err
	}
	what := "which learned "
	if m.Config.Opened() {
		what = "a published model of type "
	}
	if _, err := fmt.Fprintf(stdout, "%s, %s%s, answers on http://%s/\n", text.Escape(dir), what, text.Escape(m.Config.Task.Name), l.Addr()); err != nil {
		return err
	}
	served, err := serveUntil(cmd.Context(), l, h, h.OpenAI(modelName(dir)), o.ErrorLog)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "ended; requests: %d\n", served)
	return err
}

// modelName returns the name by which requests of OpenAI's API call the model in dir: the last part of its path.
func modelName(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	return filepath.Base(dir)
}

// maxServed is the maximum number of open connections to a service.
const maxServed = 1 << 12

// serveUntil serves h, and v1 below /v1/, until ctx is done. It returns the number of requests.
func serveUntil(ctx context.Context, l net.Listener, h *serve.Handler, v1 http.Handler, errors *log.Logger) (served int64, err error) {
	var count atomic.Int64
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		if strings.HasPrefix(r.URL.Path, "/v1/") {
			v1.ServeHTTP(w, r)
		} else {
			h.ServeHTTP(w, r)
		}
	})
	s := newServer(l, counted, maxServed, errors)
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	select {
	case err := <-failed:
		return count.Load(), err
	case <-ctx.Done():
	}
	within, cancel := context.WithTimeout(context.Background(), serveGrace)
	defer cancel()
	last, cancel := context.WithTimeout(context.Background(), serveGrace+time.Second)
	defer cancel()
	go h.Shutdown(within)
	if s.Shutdown(last) != nil { // cut off clients that read slowly or haven't sent a whole request
		s.Close()
	}
	return count.Load(), nil
}
