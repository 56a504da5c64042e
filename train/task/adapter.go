package task

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
		if info, err := os.Stat(keys.Base); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%s has an adapter for the model %.200q, which isn't a folder here: say with --base where that model is", f.Dir, keys.Base)
		}
		base = keys.Base
	}
	s, err := startOf(runfolder.At(base), "", kind)
	if err != nil {
		return nil, fmt.Errorf("%s has an adapter: its base can't be opened: %w", f.Dir, err)
	}
	published, ok := s.(publishedStart)
	if !ok {
		return nil, fmt.Errorf("%s has an adapter for a published model, and %s has none", f.Dir, base)
	}
	return adapterStart{published, f}, nil
}

func (s adapterStart) sum() (string, error) {
	base, err := s.publishedStart.sum()
	settings, failed := s.adapter.Sum(adapterFile)
	weights, missing := s.adapter.Sum(adapterWeights)
	return runfolder.JSONSum([]string{base, settings, weights}), errors.Join(err, failed, missing)
}

func (s adapterStart) load(p *layers.Params, drop func(name string, shape []int) bool) (l layers.LoadReport, err error) {
	a, err := s.model.OpenAdapter(s.adapter.FS, p)
	if err != nil {
		return l, fmt.Errorf("%s: %w", s.adapter.Dir, err)
	}
	if l, err = s.publishedStart.load(p, drop); err == nil {
		err = a.Merge(p)
	}
	return l, err
}

// ExportAdapter writes the adapter of a run with the Tune lora in the form of the library peft: adapter_config.json and
// adapter_model.safetensors. The run must have begun from a published model, at base or, if that is empty, where it
// was. The folder out is like that of Model.Export.
func ExportAdapter(dir, base, out string) error {
	m, err := openUnmerged(runfolder.At(dir), base, nil)
	switch {
	case err != nil:
		return err
	case m.adapter == nil:
		return fmt.Errorf("%s has no adapter: only runs with --tune %s have one", dir, tuneLoRA)
	case m.published == nil:
		return fmt.Errorf("%s didn't begin from a published model, and only those have adapters that other libraries open", dir)
	}
	return newFolder(out, func() error {
		return m.published.model.SaveAdapter(out, m.Config.From.Dir, m.Params, m.adapter)
	})
}
