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

	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/task"
)

// A watched call of training may have a page that shows how it goes.
type watched struct {
	train.Call
	page net.Listener // nil for none
}

// maxConnections is how many connections the page has at once: training needs to open files, too.
const maxConnections = 64

// listenFirst listens on an address of a flag in the first process of a group, and returns an error in all where that
// fails.
func listenFirst(g train.Group, flag, addr string) (l net.Listener, err error) {
	if err := checkAddr(flag, addr); err != nil {
		return nil, err
	}
	if first(g) {
		l, err = listenOn(flag, addr)
	}
	_, err = train.Share(g, nil, err)
	return l, err
}

// show has a run's page served from the first line of its log on, which a line with its address follows. end ends
// both, and says why on the page.
func (p *progress) show(l net.Listener, out io.Writer, t *task.Task, dir string) (logTo io.Writer, end func(because string), err error) {
	if l == nil {
		return out, func(string) {}, nil
	}
	h, err := p.live.Handler("Training "+t.Config.Task.Name, fmt.Sprintf("%d parameters, seed %d, folder %s", t.Params.Count(), t.Config.Seed, dir))
	if err != nil {
		return nil, nil, err
	}
	var open atomic.Int32
	s := &http.Server{
		Handler: ownNames(l.Addr(), h),
		ConnState: func(c net.Conn, is http.ConnState) {
			switch {
			case is == http.StateNew && open.Add(1) > maxConnections:
				c.Close()
			case is == http.StateClosed:
				open.Add(-1)
			}
		},
		ErrorLog:          log.New(io.Discard, "", 0), // what clients do wrong is no matter of training
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    1 << 14,
	}
	begun := false
	logTo = writerFunc(func(b []byte) (int, error) {
		n, err := out.Write(b)
		if !begun {
			begun = true
			who := ""
			if !isLoopback(l.Addr()) {
				who = ", as can whoever reaches this machine there"
			}
			fmt.Fprintf(out, "Watch it at http://%s/%s\n", l.Addr(), who)
			go s.Serve(l)
		}
		return n, err
	})
	return logTo, func(because string) {
		p.live.End(because)
		soon, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if s.Shutdown(soon) != nil { // a client doesn't take what it is sent
			s.Close()
		}
	}, nil
}
