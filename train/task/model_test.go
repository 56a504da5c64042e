package task

import (
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task/judge"
)

// Names of package model that the tests use.
type (
	Alternative     = model.Alternative
	Answer          = model.Answer
	Attention       = model.Attention
	AttentionLayer  = model.AttentionLayer
	ConfigError     = model.ConfigError
	Contribution    = model.Contribution
	From            = model.From
	Generated       = model.Generated
	GenerateOptions = model.GenerateOptions
	HeadConfig      = model.HeadConfig
	InputError      = model.InputError
	Model           = model.Model
	PredictOptions  = model.PredictOptions
	Prompt          = model.Prompt
	Span            = model.Span
	Threshold       = model.Threshold
	WindowOptions   = model.WindowOptions
	mixture         = logit.Mixture
)

var (
	Open, OpenBase, OpenAs, OpenFS = model.Open, model.OpenBase, model.OpenAs, model.OpenFS
	ExportAdapter                  = model.ExportAdapter
	ErrNoWeights, ErrFrom          = model.ErrNoWeights, model.ErrFrom
)

// Names of package judge that the tests use.
type (
	Beyond = judge.Beyond
	Judged = judge.Judged
	Report = judge.Report
	Score  = judge.Score
)

func span(label string, start, end int, text string) Span {
	return Span{Label: label, Start: start, End: end, Text: text}
}
