package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/layers"
)

// Files of an adapter that the library peft saved.
const (
	adapterFile    = "adapter_config.json"
	adapterWeights = "adapter_model.safetensors"
)

// An adapterStart is a published model, the base, with an adapter.
type adapterStart struct {
	publishedStart
	adapter runfolder.Folder
}

// openAdapter opens the folder of an adapter for models of a kind: see startOf. If base is empty, adapter_config.json
// must name a folder.
func openAdapter(f runfolder.Folder, base string, kind data.Kind) (start, error) {
	if base == "" {
		var keys struct {
			Base string `json:"base_model_name_or_path"`
		}
		content, err := f.Read(adapterFile, runfolder.MaxConfig)
		if err == nil {
			err = json.Unmarshal(content, &keys)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path(adapterFile), err)
		}
		base = find(keys.Base, "", f.Dir)
		if info, err := os.Stat(base); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%s has an adapter for the model %.200q, which isn't a folder here: say where that model is with --base, or in Go with model.OpenBase", f.Dir, keys.Base)
		}
	}
	s, err := openPublished(runfolder.At(base), kind) // not startOf, which would follow an adapter that is its own base
	if err != nil {
		return nil, fmt.Errorf("%s has an adapter for a published model, and that can't be opened: %w", f.Dir, err)
	}
	return adapterStart{s, f}, nil
}

func (s adapterStart) sum() (string, error) {
	base, err := s.publishedStart.sum()
	settings, failed := s.adapter.Sum(adapterFile)
	weights, missing := s.adapter.Sum(adapterWeights)
	return runfolder.JSONSum([]string{base, settings, weights}), errors.Join(err, failed, missing)
}

func (s adapterStart) load(p *layers.Params, drop func(name string, shape []int) bool) (l layers.LoadReport, err error) {
	if l, err = s.publishedStart.load(p, drop); err != nil {
		return l, err
	}
	a, err := s.model.OpenAdapter(s.adapter.FS, p) // compares its weights of the base with p
	if err != nil {
		return l, fmt.Errorf("%s: %w", s.adapter.Dir, err)
	}
	return l, a.Merge(p)
}
