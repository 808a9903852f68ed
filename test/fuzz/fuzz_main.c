// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a fuzz target without libFuzzer: over every file of a corpus, and over `rounds` mutations made by a fixed
// generator, so that the test is the same everywhere. Usage: fuzz_<target> CORPUS [ROUNDS [SEED]].
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "support/source.h"
#include "support/strbuf.h"
#include "support/vec.h"

typedef TL_VEC(tl_str) text_list;

static uint64_t state;

static uint32_t draw(uint32_t bound) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return bound ? (uint32_t)(state >> 33) % bound : 0;
}

// Pieces that mean something to the parsers.
static const char *const pieces[] = {
    "\n",    "  ", "- ",  ": ",   ":",       " #",     "'",    "\"",       "\\",           "|",
    ">",     "{",  "}",   "[",    "]",       "(",      ")",    ",",        "&a",           "*a",
    "!t",    "<<", "?",   "%",    "\t",      "---\n",  "\r\n", "\xC3\xA9", "\xEF\xBB\xBF", "**",
    "//",    "->", ":+",  ".T",   "in ",     "not ",   "if ",  "else ",    "==",           "max=",
    "1e999", "0x", "inf", "None", "sum[k](", "axis=1", "do:",  "let:",     "body:",        "\xFF"};

static tl_str mutate(const text_list *corpus, tl_strbuf *out) {
  tl_strbuf_clear(out);
  tl_str base = corpus->items[draw((uint32_t)corpus->len)];
  tl_strbuf_append(out, base);
  uint32_t edits = 1 + draw(4);
  for (uint32_t i = 0; i < edits; i++) {
    size_t at = draw((uint32_t)out->len + 1);
    size_t cut = draw(3) ? 0 : draw(12);
    if (cut > out->len - at) cut = out->len - at;
    tl_str insert = tl_str_from(pieces[draw(sizeof(pieces) / sizeof(pieces[0]))]);
    tl_str other = corpus->items[draw((uint32_t)corpus->len)];
    if (draw(6) == 0 && other.len) {
      size_t start = draw((uint32_t)other.len);
      insert = tl_str_sub(other, start, draw(40));
    }
    if (draw(5) == 0) insert = (tl_str){0};
    char *tail = tl_xmalloc(out->len - at - cut + 1);
    size_t tail_len = out->len - at - cut;
    memcpy(tail, out->data ? out->data + at + cut : "", tail_len);
    out->len = at;
    tl_strbuf_append(out, insert);
    tl_strbuf_append(out, (tl_str){tail, tail_len});
    free(tail);
  }
  return tl_strbuf_view(out);
}

static int is_file(const struct dirent *entry) {
  return entry->d_name[0] != '.';
}

static void read_corpus(tl_sources *sources, const char *directory, text_list *out) {
  struct dirent **entries = NULL;
  int count = scandir(directory, &entries, is_file, alphasort);
  for (int i = 0; i < count; i++) {
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", directory, entries[i]->d_name);
    uint32_t source;
    tl_status status = tl_sources_read(sources, path, 1 << 20, &source);
    if (status)
      tl_status_free(status);
    else
      tl_vec_push(out, tl_sources_get(sources, source)->text);
    free(entries[i]);
  }
  free(entries);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  tl_sources sources;
  tl_sources_init(&sources);
  text_list corpus = {0};
  read_corpus(&sources, argv[1], &corpus);
  if (!corpus.len) {
    fprintf(stderr, "no corpus in %s\n", argv[1]);
    return 2;
  }
  for (size_t i = 0; i < corpus.len; i++)
    LLVMFuzzerTestOneInput((const uint8_t *)corpus.items[i].data, corpus.items[i].len);
  uint32_t rounds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
  state = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  tl_strbuf text;
  tl_strbuf_init(&text);
  for (uint32_t i = 0; i < rounds; i++) {
    tl_str input = mutate(&corpus, &text);
    LLVMFuzzerTestOneInput((const uint8_t *)input.data, input.len);
  }
  printf("%zu corpus files, %u mutations: all properties hold\n", corpus.len, rounds);
  tl_strbuf_fini(&text);
  tl_vec_fini(&corpus);
  tl_sources_fini(&sources);
  return 0;
}
