package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/task/serve"
)

// serveGrace is how long what was taken has to be answered once the service is to end.
const serveGrace = 10 * time.Second

func newServe() *cobra.Command {
	var addr string
	var o serve.Options
	cmd := &cobra.Command{
		Use:   "serve DIR",
		Short: "Answer over HTTP with a trained model",
		Long: `Answer HTTP requests with a trained model, until SIGINT or SIGTERM ends it: what it has taken is
answered then, for up to ten seconds, and the status is 0.

  curl http://127.0.0.1:8080/predict -H 'Content-Type: application/json' \
       -d '{"inputs": ["gorgonia", "attention"], "scores": true}'
  curl -N http://127.0.0.1:8080/generate -H 'Content-Type: application/json' \
       -d '{"prompt": "To be", "tokens": 300, "temperature": 0.8}'    # of text

In a browser, the address itself is a page to try the model with, and to see what it attends to.
/openapi.json describes all that can be asked, and /health says that it is there. What waits together is
answered together. Requests and answers are JSON; too large, too slow or too many requests are refused.

It listens on this machine alone, unless --addr says otherwise: whoever can reach another address may ask,
as there are no passwords and no encryption.`,
		Example: `  heed serve runs/reverse
  heed serve runs/words --addr 127.0.0.1:0 --batch 64 --timeout 10s`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return usagef("heed serve takes one run folder, got %d arguments", len(args))
			case o.Queue < 1:
				return usagef("--queue must be at least 1, got %d", o.Queue)
			case o.Batch < 1:
				return usagef("--batch must be at least 1, got %d", o.Batch)
			case o.MaxTokens < 1:
				return usagef("--max-tokens must be at least 1, got %d", o.MaxTokens)
			case o.Sessions < 1:
				return usagef("--sessions must be at least 1, got %d", o.Sessions)
			case o.Time <= 0:
				return usagef("--timeout must be above 0, got %v", o.Time)
			}
			return checkAddr("addr", addr)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := openModel(args[0])
			if err != nil {
				return err
			}
			o.ErrorLog = errorLog(cmd.ErrOrStderr())
			o.MaxInputs = min(256, o.Queue)
			h, err := serve.New(m, o)
			if err != nil {
				return err
			}
			l, err := listenOn("addr", addr)
			if err != nil {
				return err
			}
			task := m.Config.Task
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s, which learned %s, answers on http://%s/\n", text.Escape(args[0]), text.Escape(task.Name), l.Addr()); err != nil {
				return err
			}
			served, err := serveUntil(cmd.Context(), l, h, o.ErrorLog)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "ended; requests: %d\n", served)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&addr, "addr", "127.0.0.1:8080", "where to listen: a host and a port, 0 for a free one")
	f.IntVar(&o.Queue, "queue", 1024, "inputs that wait to be answered, at most")
	f.IntVar(&o.Batch, "batch", 32, "inputs that are answered together, at most")
	f.IntVar(&o.MaxTokens, "max-tokens", 1024, "what a request may have a text model write, at most")
	f.IntVar(&o.Sessions, "sessions", 16, "texts that are written at once, at most")
	f.DurationVar(&o.Time, "timeout", time.Minute, "what a request may take, such as 30s")
	return cmd
}

// errorLog is what a server tells of errors to, which are nobody's who asks.
func errorLog(stderr io.Writer) *log.Logger {
	return log.New(writerFunc(func(b []byte) (int, error) {
		if _, err := fmt.Fprint(stderr, "heed: ", text.Escape(string(b))); err != nil {
			return 0, err
		}
		return len(b), nil
	}), "", 0)
}

// serveUntil serves h until ctx is done, and returns how many requests there were.
func serveUntil(ctx context.Context, l net.Listener, h *serve.Handler, errors *log.Logger) (served int64, err error) {
	var count atomic.Int64
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		h.ServeHTTP(w, r)
	})
	s := &http.Server{
		Handler:           ownNames(l.Addr(), counted),
		ErrorLog:          errors,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    1 << 16,
	}
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
	if s.Shutdown(last) != nil { // whoever takes an answer slowly, or hasn't sent a request whole, is cut off
		s.Close()
	}
	return count.Load(), nil
}
