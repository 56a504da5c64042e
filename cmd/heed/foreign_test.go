package main

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/runfolder"
)

// TestForeignTokenizers puts other tokenizers into a run folder, with their checksums in config.json. Every command
// that opens the folder must refuse them, because a tokenizer.json that isn't Heed's own could take all memory.
func TestForeignTokenizers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	data := sharedFile(t, "fox.txt", fox)
	succeed(t, small("--task=text", "--units=bpe", "--vocab-size=260", "--max-len=16", "--max-epochs=1", "--steps-per-epoch=2", "--data="+data, "--out="+dir)...)
	path, config := filepath.Join(dir, runfolder.TokenizerFile), filepath.Join(dir, runfolder.ConfigFile)
	good, goodConfig := read(t, path), read(t, config)
	sum := func(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }
	for old, now := range map[string]string{
		`"normalizer": null`:                  `"normalizer": {"type": "Replace", "pattern": {"String": "e"}, "content": "` + strings.Repeat("e", 4096) + `"}`,
		`"added_tokens": []`:                  `"added_tokens": [{"id": 0, "content": "!", "normalized": true}]`,
		`"continuing_subword_prefix": null`:   `"continuing_subword_prefix": ""`,
		strings.SplitAfter(good, "\n")[28]:    "",
		strings.TrimSuffix(good[1:], "\n}\n"): "",
	} {
		changed := strings.Replace(good, old, now, 1)
		write(t, path, changed)
		write(t, config, regexp.MustCompile(`"sha256": "[0-9a-f]*"\n}`).ReplaceAllString(strings.Replace(goodConfig, sum(good), sum(changed), 1), `"sha256": ""}`))
		for _, call := range []string{
			"eval RUN", "generate RUN --prompt=The --tokens=2", "predict RUN The", "attention RUN The", "report RUN", "tokenize RUN The", "serve RUN --addr=localhost:0",
			"train --resume=RUN", "train --task=text --from=RUN --data=" + data,
		} {
			fail(t, heed(strings.Fields(strings.ReplaceAll(call, "RUN", dir))...), 1, "config.json: its tokenizer.json: ", "that heed has written: ")
		}
	}
	write(t, path, good)
	write(t, config, goodConfig)
	succeed(t, "eval", dir)
}
