package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/data/toy"
	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/linear/beside"
	"github.com/heed-go/heed/internal/runfolder"
)

// A configFile is the content of config.json.
type configFile struct {
	Config
	Training json.RawMessage `json:"training"`
	SHA256   string          `json:"sha256,omitempty"` // see runfolder.Seal
}

// parseConfig decodes a config.json, but not its training. Unknown keys, keys with other capitals and repeated keys are
// errors.
func parseConfig(content []byte) (c Config, training json.RawMessage, err error) {
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(content, &version); err != nil {
		if errors.As(err, new(*json.SyntaxError)) {
			err = fmt.Errorf("it isn't complete JSON (%w): restore it", jsonkeys.Check(content, nil))
		}
		return c, nil, choices.Readable(err)
	}
	switch {
	case version.Format < Format:
		return c, nil, fmt.Errorf("this run folder has the older format %d, and heed reads format %d: train it again", version.Format, Format)
	case version.Format > Format:
		return c, nil, fmt.Errorf("this run folder has the newer format %d, and heed reads format %d: update heed", version.Format, Format)
	}
	var file configFile
	if err := choices.Decode(content, &file); err != nil {
		return c, nil, choices.Readable(err)
	}
	return file.Config, file.Training, runfolder.CheckSeal(content, file.SHA256)
}

// RunID returns a name for the settings that determine a run's result. The files of a run have the same id. The paths
// of the data and of From, and of the training max_epochs and patience, aren't part of the id, because they may change.
func RunID(c Config, training []byte) string {
	c.MoveTo(Config{})
	c.Task.About, c.Task.Example = "", ""
	var settings map[string]any
	d := json.NewDecoder(bytes.NewReader(training))
	d.UseNumber()
	if d.Decode(&settings) == nil {
		delete(settings, "max_epochs")
		if stopping, ok := settings["stopping"].(map[string]any); ok {
			delete(stopping, "patience")
		}
	}
	return runfolder.ConfigFile + " " + runfolder.JSONSum([]any{c, settings})
}

// spells reports whether a rule has a Spell or a Read, which a model needs to answer.
func spells(r data.Rule) bool { return r.Spell != nil || r.Read != nil }

// TokenizerSums returns the checksum of the archive, if there is one, and then of each tokenizer file.
func (c *Config) TokenizerSums() ([]string, error) {
	sums, err := runfolder.TokenizerSums(c.Tokenizers())
	if c.Published() {
		sums = append([]string{runfolder.Sum(c.Archive)}, sums...)
	}
	return sums, err
}

// readTokenizers reads the tokenizers of a run folder into the configuration, and compares their checksums.
func (c *Config) readTokenizers(f runfolder.Folder) error {
	if c.Published() && len(c.Data.Tokenizers) > 0 {
		return c.readPublished(f)
	}
	names := runfolder.TokenizerFiles(len(c.Data.Tokenizers))
	if names == nil && c.FromRows() {
		return fmt.Errorf("data.tokenizers_sha256 must have the checksum of %s, or of %s and %s", runfolder.TokenizerFile, runfolder.SourceTokenizerFile, runfolder.TargetTokenizerFile)
	}
	if !c.about().rows && (c.Data.SourceUnits == tokenizer.BPE) != (len(names) == 1) {
		return fmt.Errorf("data.tokenizers_sha256 must have the checksum of %s if data.source_units are %s, and otherwise be empty", runfolder.TokenizerFile, tokenizer.BPE)
	}
	list, err := f.Tokenizers(c.Data.Tokenizers)
	for i, t := range list {
		*[]*tokenizer.Tokenizer{&c.Task.Source, &c.Task.Target}[i] = t
	}
	return err
}

// readPublished reads the archive of a published model in a run folder, and the tokenizer of answers, if there is one.
func (c *Config) readPublished(f runfolder.Folder) error {
	content, err := f.Read(runfolder.PublishedFile, runfolder.MaxPublished)
	if err == nil && runfolder.Sum(content) != c.Data.Tokenizers[0] {
		err = errors.New("its content doesn't match data.tokenizers_sha256: restore it")
	}
	if err != nil {
		return fmt.Errorf("its %s: %w", runfolder.PublishedFile, err)
	}
	c.Archive = content
	s, err := openArchive(content, c.Task.Kind)
	if err != nil {
		return err
	}
	if c.Task.Source, err = s.tokenizer(); err != nil {
		return fmt.Errorf("its %w", err)
	}
	if c.about().decoder {
		if c.Task.Target, err = s.target(); err != nil {
			return fmt.Errorf("its %w", err)
		}
	}
	targets, err := f.Tokenizers(c.Data.Tokenizers[1:])
	if len(targets) > 0 {
		c.Task.Target = targets[0]
	}
	return err
}

// complete adds the rule's functions to the configuration.
func (c *Config) complete(rules []data.Rule) error {
	rule := c.Task
	if i := slices.IndexFunc(rules, func(r data.Rule) bool { return r.Name == rule.Name }); i >= 0 {
		rule = rules[i]
	} else if slices.Contains(toy.Names(), rule.Name) {
		var err error
		if rule, err = toy.Named(rule.Name, rule.MaxLen); err != nil {
			return err
		}
	} else if c.Spelled {
		return fmt.Errorf("the task %s isn't one of Heed's own, and its model needs the rule's Spell and Read: pass the rule to Open", rule.Name)
	}
	c.Task.About, c.Task.Example = rule.About, rule.Example
	if !runfolder.SameJSON(rule, c.Task) || c.Spelled != spells(rule) {
		return fmt.Errorf("the run's task %s differs from the known task of that name: pass the run's rule to Open, or train it again", rule.Name)
	}
	c.Task = rule
	return nil
}

// ReadLinear reads the linear model in the folder of the run with this id: see beside.Read.
func (c *Config) ReadLinear(f runfolder.Folder, id string) (*beside.Model, error) {
	width := 0
	if c.needsBase() {
		width = c.Model.Dim
	}
	return beside.Read(f, id, width)
}
