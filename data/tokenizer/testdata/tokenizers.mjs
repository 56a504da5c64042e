// Encodes and decodes the texts of a file with another library, for data/tokenizer/agree_test.go to compare with:
//
//	npm install @huggingface/tokenizers@0.2.0
//	go test ./data/tokenizer -run TokenizersAgree -fixture FILE -write 5000    # writes tokenizers, and 5000 texts for each, to FILE
//	node tokenizers.mjs FILE                                         # adds the library's ids and texts
//	go test ./data/tokenizer -run TokenizersAgree -fixture FILE                # compares
//
// testdata/tokenizers.json is such a file, with 120 texts.
import { readFileSync, writeFileSync } from "node:fs";
import { Tokenizer } from "@huggingface/tokenizers";

const path = process.argv[2];
const sets = JSON.parse(readFileSync(path, "utf8"));
for (const set of sets) {
  // This library takes WordLevel's unknown token from the configuration; the Rust library takes it from the model.
  const tokenizer = new Tokenizer(set.tokenizer, { unk_token: set.tokenizer.model.unk_token, clean_up_tokenization_spaces: false });
  for (const one of set.texts) {
    one.ids = tokenizer.encode(one.text).ids;
    one.decoded = one.ids.length === 0 ? "" : tokenizer.decode(one.ids); // decode fails without ids
  }
}
const lines = (set) => set.texts.map((one) => JSON.stringify(one)).join(",\n");
writeFileSync(path, "[" + sets.map((set) => `{"tokenizer": ${JSON.stringify(set.tokenizer)}, "texts": [\n${lines(set)}\n]}`).join(",\n") + "]\n");
