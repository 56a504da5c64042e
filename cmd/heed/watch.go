package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"time"

	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/task"
)

// maxConnections is the maximum number of open connections to the page: training must still be able to open files.
const maxConnections = 64

// listenFirst listens on a flag's address in the first process of a group. If that fails, it returns an error in all
// processes.
func listenFirst(g train.Group, flag, addr string) (l net.Listener, err error) {
	if err := checkAddr(flag, addr); err != nil {
		return nil, err
	}
	if first(g) {
		l, err = listenOn(flag, addr)
	}
	_, err = train.Broadcast(g, nil, err)
	return l, err
}

// show serves a run's page on l, or does nothing if l is nil. The log of the run must be written to logTo. After the
// log's first line, show prints the address and starts to serve. The function end shows why the run ended, and stops
// serving.
func (p *progress) show(l net.Listener, out io.Writer, t *task.Task, dir string) (logTo io.Writer, end func(because string), err error) {
	if l == nil {
		return out, func(string) {}, nil
	}
	h, err := p.live.Handler("Training "+t.Config.Task.Name, fmt.Sprintf("%s, seed %d, folder %s", t.DescribeParams(), t.Config.Seed, dir))
	if err != nil {
		return nil, nil, err
	}
	s := newServer(l, h, maxConnections, log.New(io.Discard, "", 0)) // clients' errors don't concern training
	s.ReadHeaderTimeout, s.IdleTimeout, s.MaxHeaderBytes = 5*time.Second, time.Minute, 1<<14
	s.WriteTimeout = 10 * time.Second // the page's events have a deadline each
	serving := false
	logTo = writerFunc(func(b []byte) (int, error) {
		n, err := out.Write(b)
		if !serving {
			serving = true
			warning := ""
			if !isLoopback(l.Addr()) {
				warning = ", which everyone who can reach this machine may open"
			}
			fmt.Fprintf(out, "Watch it at http://%s/%s\n", l.Addr(), warning)
			go s.Serve(l)
		}
		return n, err
	})
	return logTo, func(because string) {
		p.live.End(because)
		soon, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if s.Shutdown(soon) != nil { // a client doesn't read what it is sent
			s.Close()
		}
	}, nil
}
