package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Limits of what heed reads from standard input before it answers. They bound memory.
const (
	maxLine  = 1 << 22 // bytes of a line
	maxLines = 1 << 13 // lines answered together
	maxBytes = 1 << 24 // bytes answered together, roughly: no lines are added beyond this
)

// typeLines is the hint of commands that answer each line by itself.
const typeLines = "Type one input per line; Ctrl-D ends the input.\n"

// inputLines calls do with the lines of standard input as they arrive. Lines that arrive while do runs are passed
// together to its next call. The argument first is the number of the first line, from 1. If standard input is a
// terminal, inputLines prints a hint first.
func inputLines(cmd *cobra.Command, hint string, do func(first int, lines []string) error) error {
	r, err := stdin(cmd)
	if err != nil {
		return err
	}
	if typed(cmd) {
		fmt.Fprint(cmd.ErrOrStderr(), hint)
	}
	read, arrived, failed := make(chan string), make(chan []string), make(chan error, 1)
	go func() { // after an interruption, this goroutine waits for a line until the process ends
		s := bufio.NewScanner(r)
		s.Buffer(nil, maxLine)
		for s.Scan() {
			read <- s.Text()
		}
		failed <- s.Err()
		close(read)
	}()
	go gather(read, arrived)
	number := 0
	for {
		select {
		case lines, ok := <-arrived:
			if !ok {
				if err := <-failed; errors.Is(err, bufio.ErrTooLong) {
					return fmt.Errorf("standard input, line %d: the line has more than %d MiB", number+1, maxLine>>20)
				} else if err != nil {
					return fmt.Errorf("standard input, line %d: %w", number+1, err)
				}
				return nil
			}
			if number == 0 {
				lines[0] = strings.TrimPrefix(lines[0], "\uFEFF")
			}
			if err := do(number+1, lines); err != nil {
				return err
			}
			number += len(lines)
		case <-cmd.Context().Done():
			return cmd.Context().Err()
		}
	}
}

// typed reports whether standard input is a terminal.
func typed(cmd *cobra.Command) bool {
	f, ok := cmd.InOrStdin().(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// gather collects lines from read until arrived takes them, up to maxLines lines or about maxBytes bytes. It closes
// arrived when read is closed.
func gather(read <-chan string, arrived chan<- []string) {
	defer close(arrived)
	var lines []string
	for bytes, more := 0, true; more || lines != nil; {
		source, taker := read, arrived // a nil channel blocks
		if !more || len(lines) == maxLines || bytes >= maxBytes {
			source = nil
		}
		if lines == nil {
			taker = nil
		}
		select {
		case line, ok := <-source:
			if more = ok; ok {
				lines, bytes = append(lines, line), bytes+len(line)
			}
		case taker <- lines:
			lines, bytes = nil, 0
		}
	}
}
