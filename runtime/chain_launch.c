// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launching a chain on a GPU: every step is checked and planned before the first one is launched.
#include <stdlib.h>
#include <string.h>

#include "runtime/chain.h"
#include "runtime/program.h"
#include "runtime/versions.h"
#include "support/status.h"

// A step, and the kernel that it launches: the one of the manifest, or its aligned version.
typedef struct step_plan {
  tl_launch_plan plan;
  uint32_t kernel;
} step_plan;

static tl_launch_facts facts_of(const tl_chain *chain) {
  return (tl_launch_facts){.num_sms = chain->program->device->num_sms, .user = chain->program->device};
}

// The buffers at their places in a workspace, which is NULL where none of them has elements.
static void place_buffers(const tl_chain_launch_plan *plan, void *workspace, void **out) {
  for (uint32_t i = 0; workspace && i < plan->chain->num_buffers; i++)
    out[i] = (char *)workspace + plan->buffer_offsets[i];
}

// Plans of all steps; those made are counted also on failure.
static tl_status plan_steps(tl_chain *chain, tl_chain_launch_plan *plan, void *workspace, step_plan *steps,
                            uint32_t *out_num) {
  const tl_manifest_chain *manifest = chain->manifest;
  *out_num = 0;
  void **buffers = calloc(manifest->num_buffers + 1, sizeof *buffers);
  if (!buffers) return tl_status_out_of_memory();
  place_buffers(plan, workspace, buffers);
  tl_launch_facts facts = facts_of(chain), aligned_facts = facts;
  tl_status status = TL_OK;
  for (*out_num = 0; !status && *out_num < manifest->num_steps; *out_num += !status) {
    tl_kernel *kernel = &chain->program->kernels[manifest->steps[*out_num].kernel];
    const tl_argument *arguments;
    size_t num_arguments;
    step_plan *step = &steps[*out_num];
    facts.resident_blocks = kernel->resident_blocks;
    if (kernel->aligned) aligned_facts.resident_blocks = kernel->aligned->resident_blocks;
    status = tl_chain_launch_plan_step(plan, *out_num, buffers, &arguments, &num_arguments);
    if (!status)
      status =
          tl_launch_plan_version(&chain->program->manifest, manifest->steps[*out_num].kernel, arguments, num_arguments,
                                 &facts, kernel->is_plain ? NULL : &aligned_facts, &step->plan, &step->kernel);
    if (!status) kernel->took_version = step->kernel != manifest->steps[*out_num].kernel;
    status = tl_status_annotate(status, "step %u, '%s'", *out_num + 1, kernel->manifest->name);
  }
  free(buffers);
  return status;
}

static void fini_steps(step_plan *steps, uint32_t num) {
  for (uint32_t i = 0; i < num; i++) tl_launch_plan_fini(&steps[i].plan);
  free(steps);
}

// What the caller gave, or the chain's own for the stream.
static tl_status take_workspace(tl_chain *chain, const tl_chain_launch_plan *plan, void *given, size_t given_bytes,
                                void *stream, void **out) {
  tl_device *device = chain->program->device;
  bool is_new;
  *out = NULL;
  if (plan->workspace_bytes == 0) return TL_OK;
  if (!given) return tl_workspace_take(device, &chain->workspaces, 0, plan->workspace_bytes, stream, out, &is_new);
  if (given_bytes < (size_t)plan->workspace_bytes)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "the workspace has %zu bytes, %lld are needed", given_bytes,
                          (long long)plan->workspace_bytes);
  if ((uintptr_t)given % TL_CHAIN_ALIGN != 0)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "the workspace is not aligned to %d bytes", TL_CHAIN_ALIGN);
  *out = given;
  return tl_launch_validate_pointer(device, "workspace", given);
}

static tl_status make_plan(tl_chain *chain, const tl_argument *arguments, size_t num_arguments, bool with_pointers,
                           tl_chain_launch_plan *plan) {
  tl_launch_facts facts = facts_of(chain);
  if (with_pointers) facts.validate_pointer = tl_launch_validate_pointer;
  return tl_chain_launch_plan_create(chain->manifest, arguments, num_arguments, &facts, plan);
}

static tl_status launch(tl_chain *chain, tl_chain_launch_plan *plan, void *workspace, size_t workspace_bytes,
                        void *stream) {
  uint32_t num = 0;
  step_plan *steps = calloc(chain->manifest->num_steps + 1, sizeof *steps);
  if (!steps) return tl_status_out_of_memory();
  void *memory = NULL;
  tl_status status = take_workspace(chain, plan, workspace, workspace_bytes, stream, &memory);
  if (!status) status = plan_steps(chain, plan, memory, steps, &num);
  for (uint32_t i = 0; !status && i < num; i++) {
    tl_kernel *kernel = &chain->program->kernels[steps[i].kernel];
    if (steps[i].plan.is_empty) continue;
    status = tl_status_annotate(tl_launch_run(kernel, &steps[i].plan, stream), "step %u, '%s'", i + 1,
                                kernel->manifest->name);
  }
  fini_steps(steps, num);
  return status;
}

tl_status tl_chain_launch(tl_chain *chain, const tl_argument *arguments, size_t num_arguments, void *workspace,
                          size_t workspace_bytes, void *stream) {
  TL_TRY(tl_status_not_null(chain, "chain"));
  TL_TRY(tl_status_not_null(num_arguments ? (const void *)arguments : chain, "arguments"));
  tl_chain_launch_plan plan;
  TL_TRY(tl_device_enter(chain->program->device));
  tl_status status = make_plan(chain, arguments, num_arguments, true, &plan);
  if (!status) {
    // One launch at a time: a larger workspace replaces the one that another thread is about to use.
    pthread_mutex_lock(&chain->lock);
    status = launch(chain, &plan, workspace, workspace_bytes, stream);
    pthread_mutex_unlock(&chain->lock);
    tl_chain_launch_plan_fini(&plan);
  }
  status = tl_device_leave(chain->program->device, status);
  return tl_status_annotate(status, "launching '%s'", chain->manifest->signature.name);
}

tl_status tl_chain_check(tl_chain *chain, const tl_argument *arguments, size_t num_arguments) {
  TL_TRY(tl_status_not_null(chain, "chain"));
  TL_TRY(tl_status_not_null(num_arguments ? (const void *)arguments : chain, "arguments"));
  tl_chain_launch_plan plan;
  TL_TRY(tl_device_enter(chain->program->device));
  tl_status status = make_plan(chain, arguments, num_arguments, true, &plan);
  if (!status) {
    uint32_t num = 0;
    step_plan *steps = calloc(chain->manifest->num_steps + 1, sizeof *steps);
    // An address that nothing will use: aligned, and not NULL.
    status =
        !steps ? tl_status_out_of_memory() : plan_steps(chain, &plan, (void *)(uintptr_t)TL_CHAIN_ALIGN, steps, &num);
    fini_steps(steps, num);
    tl_chain_launch_plan_fini(&plan);
  }
  return tl_device_leave(chain->program->device, status);
}

tl_status tl_chain_workspace_bytes(tl_chain *chain, const tl_argument *arguments, size_t num_arguments,
                                   size_t *out_bytes) {
  TL_TRY(tl_status_not_null(out_bytes, "out_bytes"));
  *out_bytes = 0;
  TL_TRY(tl_status_not_null(chain, "chain"));
  TL_TRY(tl_status_not_null(num_arguments ? (const void *)arguments : chain, "arguments"));
  tl_chain_launch_plan plan;
  // Pointers may still be missing: a framework asks before it allocates.
  tl_argument *shapes = calloc(num_arguments + 1, sizeof *shapes);
  if (!shapes) return tl_status_out_of_memory();
  if (num_arguments) memcpy(shapes, arguments, num_arguments * sizeof *shapes);
  for (size_t i = 0; i < num_arguments; i++) shapes[i].tensor.data = (void *)(uintptr_t)TL_CHAIN_ALIGN;
  tl_status status = make_plan(chain, shapes, num_arguments, false, &plan);
  free(shapes);
  if (status) return status;
  *out_bytes = (size_t)plan.workspace_bytes;
  tl_chain_launch_plan_fini(&plan);
  return TL_OK;
}

// ---- chains of a program

size_t tl_program_num_chains(const tl_program *program) {
  return program ? program->manifest.num_chains : 0;
}

tl_chain *tl_program_chain_at(tl_program *program, size_t index) {
  return index < tl_program_num_chains(program) ? &program->chains[index] : NULL;
}

tl_status tl_program_chain(tl_program *program, const char *name, tl_chain **out_chain) {
  TL_TRY(tl_status_not_null(out_chain, "out_chain"));
  *out_chain = NULL;
  TL_TRY(tl_status_not_null(program, "program"));
  uint32_t count = program->manifest.num_chains;
  *out_chain = !name && count == 1 ? &program->chains[0] : NULL;
  tl_strbuf list = {0};
  for (uint32_t i = 0; i < count; i++) {
    const char *have = program->manifest.chains[i].signature.name;
    if (name && strcmp(have, name) == 0) *out_chain = &program->chains[i];
    tl_strbuf_appendf(&list, "%s%s", i ? ", " : "", have);
  }
  tl_status status = TL_OK;
  if (!*out_chain)
    status = tl_status_make(TL_STATUS_NOT_FOUND, "%s%s%s: the program has the chains: %s",
                            name ? "no chain '" : "a chain must be named", name ? name : "", name ? "'" : "",
                            list.len ? tl_strbuf_c(&list) : "none");
  tl_strbuf_fini(&list);
  return status;
}

const char *tl_chain_name(const tl_chain *chain) {
  return chain ? chain->manifest->signature.name : "";
}
size_t tl_chain_num_steps(const tl_chain *chain) {
  return chain ? chain->manifest->num_steps : 0;
}
