package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/heed-go/heed/internal/apart"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
)

// A predictRequest asks for answers to inputs.
type predictRequest struct {
	Input texts `json:"input"`
	Beam  int   `json:"beam"`
	Top   int   `json:"top"`

	Entities string `json:"entities"`
	Labels   texts  `json:"labels"`
	Template string `json:"template"`
	Several  bool   `json:"several"`

	NoAnswer bool `json:"no_answer"`
}

// texts are one or several inputs: in JSON, a text or a list of texts.
type texts []string

func (t *texts) UnmarshalJSON(b []byte) error {
	list := []*string{new(string)}
	into := any(&list)
	if b[0] == '"' {
		into = list[0]
	}
	if err := json.Unmarshal(b, into); err != nil {
		return err
	}
	if *t = nil; list != nil { // not null
		*t = texts{}
	}
	for _, s := range list {
		if s == nil {
			return &json.UnmarshalTypeError{Value: "null among them"}
		}
		*t = append(*t, *s)
	}
	return nil
}

// predict answers inputs.
func (h *Handler) predict(w http.ResponseWriter, r *http.Request) error {
	request, err := h.readPredict(w, r)
	if err != nil {
		return err
	}
	options := model.PredictOptions{Beam: request.Beam, Top: request.Top, Entities: request.Entities, Threshold: h.options.Threshold, NoAnswer: request.NoAnswer}
	var answers []model.Answer
	if request.Labels == nil {
		answers, err = h.ask(&job{ctx: r.Context(), inputs: request.Input, options: options})
	} else {
		options.Threshold, options.Labels = model.Threshold{}, &model.Labels{Names: request.Labels, Template: request.Template, Several: request.Several}
		err = h.queue(r.Context(), len(request.Input)*len(request.Labels), func() (err error) {
			answers, err = h.model.PredictAll(r.Context(), request.Input, options)
			return err
		})
	}
	if err != nil {
		return badInput(err, "input")
	}
	return h.reply(w, struct {
		Answers []model.Answer `json:"answers"`
	}{answers})
}

// readPredict reads and checks a request.
func (h *Handler) readPredict(w http.ResponseWriter, r *http.Request) (request predictRequest, err error) {
	wants := map[string]string{
		"input": fmt.Sprintf("a text, or a list of 1 to %d texts", h.options.MaxInputs),
	}
	if h.maxTop() > 0 {
		wants["top"] = fmt.Sprintf("a whole number from 1 to %d, or 0 for none", h.maxTop())
	}
	if h.does.Beam > 1 {
		wants["beam"] = fmt.Sprintf("a whole number from 1 to %d", h.options.MaxBeam)
	}
	if h.does.Entities != nil {
		wants["entities"] = "one of " + text.Either(h.does.Entities)
	}
	if h.does.Labels == nil {
		wants["labels"] = fmt.Sprintf("a text, or a list of texts, up to %d for all inputs together", h.options.MaxInputs)
		wants["template"], wants["several"] = "a text with {} in the place of a label", "true or false"
	}
	if h.does.NoAnswer {
		wants["no_answer"] = "true or false"
	}
	usual := h.model.DefaultBeam()
	request.Beam = usual
	if err := h.read(w, r, &request, wants); err != nil {
		return request, err
	}
	switch n := len(request.Input); {
	case n == 0 || n > h.options.MaxInputs:
		return request, failf(http.StatusBadRequest, "input must be %s, got %d", wants["input"], n)
	case request.Beam != usual && (request.Beam < 1 || request.Beam > h.options.MaxBeam):
		return request, failf(http.StatusBadRequest, "beam must be %s, got %d", wants["beam"], request.Beam)
	case request.Top < 0 || request.Top > h.maxTop():
		return request, failf(http.StatusBadRequest, "top must be %s, got %d", wants["top"], request.Top)
	case request.Top > h.options.MaxTop/n:
		return request, failf(http.StatusBadRequest, "top must be at most %d for %d inputs, got %d: ask for less at a time", h.options.MaxTop/n, n, request.Top)
	case request.Labels == nil && (request.Template != "" || request.Several):
		return request, failf(http.StatusBadRequest, "template and several are for labels: set labels to %s", wants["labels"])
	case len(request.Labels) > h.options.MaxInputs/n:
		return request, failf(http.StatusBadRequest, "labels must be at most %d for %d inputs, got %d: ask for less at a time", h.options.MaxInputs/n, n, len(request.Labels))
	case request.Several && request.Top == 0:
		request.Top = len(request.Labels)
	}
	return request, nil
}

// maxTop returns the largest top of a request with one input, or 0 if answers have no alternatives. Classes are short,
// but answers in units may be long.
func (h *Handler) maxTop() int {
	top := min(h.options.MaxTop, h.does.Top)
	if h.does.Units != "" {
		top = min(top, h.options.MaxBeam)
	}
	return top
}

// A job is the inputs of a request, which wait for their answers.
type job struct {
	ctx     context.Context // of the request
	inputs  []string
	options model.PredictOptions
	alone   func() error  // if not nil, the job is this function instead, and never joins other jobs
	done    chan struct{} // closed when answers or err is set

	answers []model.Answer
	err     error
}

// ask queues a job and waits until it is answered or its context ends. A job that still waits then leaves the queue.
func (h *Handler) ask(j *job) ([]model.Answer, error) {
	j.done = make(chan struct{})
	h.mu.Lock()
	if h.inputs+len(j.inputs) > h.options.Queue {
		defer h.mu.Unlock()
		return nil, failf(http.StatusServiceUnavailable, "too many inputs are already waiting (%d): try again later", h.inputs)
	}
	h.inputs += len(j.inputs)
	h.waiting = append(h.waiting, j)
	if !h.working {
		h.working = true
		go h.work()
	}
	h.mu.Unlock()
	select {
	case <-j.done:
		return j.answers, j.err
	case <-j.ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.waiting, j); i >= 0 {
		h.waiting = slices.Delete(h.waiting, i, i+1)
		h.inputs -= len(j.inputs)
	}
	return nil, j.ctx.Err()
}

// queue calls f when the model is free, after the jobs that wait already. The job counts as a number of inputs, which
// may wait: if there are too many, queue returns an error with status 503. If ctx ends first, queue returns ctx.Err(),
// and doesn't call f, or doesn't wait for its end. If f panics, queue logs that and returns an error.
func (h *Handler) queue(ctx context.Context, inputs int, f func() error) error {
	_, err := h.ask(&job{ctx: ctx, inputs: make([]string, inputs), alone: f})
	return err
}

// work answers waiting jobs until there are none.
func (h *Handler) work() {
	for jobs := h.take(); len(jobs) > 0; jobs = h.take() {
		h.answer(jobs)
	}
}

// take removes the next jobs to answer together from the queue: the first waiting job, and others with the same
// options, up to Batch inputs.
func (h *Handler) take() (taken []*job) {
	h.mu.Lock()
	defer h.mu.Unlock()
	inputs := 0
	var left []*job
	for _, j := range h.waiting {
		if len(taken) == 0 || j.alone == nil && taken[0].alone == nil && j.options == taken[0].options && inputs+len(j.inputs) <= h.options.Batch {
			taken = append(taken, j)
			inputs += len(j.inputs)
		} else {
			left = append(left, j)
		}
	}
	h.waiting = left
	h.inputs -= inputs
	h.working = len(taken) > 0
	return taken
}

// answer answers jobs together. If that fails, it answers each job separately, so that no job fails because of another.
// It stops when the contexts of all jobs have ended.
func (h *Handler) answer(jobs []*job) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var inputs []string
	var waited atomic.Int64
	waited.Store(int64(len(jobs)))
	for _, j := range jobs {
		inputs = append(inputs, j.inputs...)
		defer context.AfterFunc(j.ctx, func() {
			if waited.Add(-1) == 0 {
				cancel()
			}
		})()
	}
	var answers []model.Answer
	err := h.recovered(func() (err error) {
		if jobs[0].alone != nil {
			return jobs[0].alone()
		}
		answers, err = h.model.PredictAll(ctx, inputs, jobs[0].options)
		return err
	})
	if err != nil && len(jobs) > 1 && ctx.Err() == nil {
		for _, j := range jobs {
			h.answer([]*job{j})
		}
		return
	}
	for _, j := range jobs {
		if j.err = err; err == nil && j.alone == nil {
			j.answers, answers = answers[:len(j.inputs)], answers[len(j.inputs):]
		}
		close(j.done)
	}
}

// recovered calls f. If f panics or ends its goroutine, recovered returns an error.
func (h *Handler) recovered(f func() error) error {
	err := apart.Call(f)
	if errors.Is(err, apart.ErrGoexit) || errors.As(err, new(*apart.Panic)) {
		h.options.ErrorLog.Printf("panic in the model: %v", err)
		err = errors.New("the model failed on this request: see the service's log")
	}
	return err
}

// badInput returns err, with the status 400 if it is about the input, which is the field of this name, or about a
// setting.
func badInput(err error, input string) error {
	if wrong := (*model.InputError)(nil); errors.As(err, &wrong) {
		err = setting.Errorf("%s: %w", setting.Path(input), wrong.Err)
	}
	if errors.As(err, new(*model.ConfigError)) && !errors.As(err, new(*statusError)) {
		return &statusError{status: http.StatusBadRequest, err: err}
	}
	return err
}
