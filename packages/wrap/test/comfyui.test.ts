import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { type ComfyuiServer, startComfyui } from '../../../test/support/comfyui-server.ts';
import { waitFor } from '../../../test/support/wait.ts';
import { aFolder } from '../../capability/test/support/folders.ts';
import { call, callInLines, failedChecks, findingsOf, linesOf, startWrapped } from './support.ts';

const folder = fileURLToPath(new URL('../../../examples/wrap', import.meta.url));

let server: ComfyuiServer;
beforeEach(async () => {
  server = await startComfyui();
  onTestFinished(() => server.close());
});

function aWorkflow(fields = '', more = ''): string {
  return `kind: comfyui
name: painter
version: 1.0.0
description: Paints a picture.
max_concurrency: 4
comfyui:
  base_url: "${server.url}"
  workflow: comfyui-workflow.json
  every: 10ms
${more}  fields:
    prompt: {node: "6", input: text}
    steps: {node: "3", input: steps}
    seed: {node: "3", input: seed, random: true}
${fields}`;
}

const output_path = 'media://job/out.png';
const saved = {
  9: {
    images: [
      { filename: 'a.png', subfolder: 'x', type: 'output' },
      { filename: 'p.png', type: 'temp' },
    ],
  },
};

/** Ends prompts as they come. */
function finishAll(outputs: object): void {
  const timer = setInterval(() => {
    for (const prompt of server.prompts) if (prompt.state === 'running') server.finish(prompt, outputs);
  }, 10);
  onTestFinished(() => clearInterval(timer));
}

it('fills the fields of the workflow, stores what it saves, and keeps the contract', async () => {
  const instance = await startWrapped(aWorkflow(), { folder });
  finishAll(saved);
  const answer = await call(instance, { prompt: 'a cat', output_path });
  expect(answer.body.output).toEqual({ output_path, output_paths: [output_path] });
  expect((await instance.get(output_path)).toString()).toBe('bytes of a.png');
  const inputs = server.prompts[0]?.workflow;
  expect(inputs?.['6']?.inputs.text).toBe('a cat');
  expect(inputs?.['3']?.inputs).toMatchObject({ steps: 20, seed: expect.any(Number), model: ['4', 0] });
  expect(inputs?.['3']?.inputs.seed).not.toBe(1);
  await call(instance, { prompt: 'a cat', output_path, seed: 7, steps: 4 });
  expect(server.prompts[1]?.workflow['3']?.inputs).toMatchObject({ steps: 4, seed: 7 });
  expect(await failedChecks(instance, { prompt: 'a dog', output_path })).toEqual([]);
});

it('takes its schema from the workflow', async () => {
  const instance = await startWrapped(aWorkflow(), { folder });
  const spec = await (await fetch(`${instance.endpoint}/spec`)).json();
  expect(spec).toMatchObject({
    input: {
      required: ['output_path'],
      properties: {
        prompt: { type: 'string', default: 'a lighthouse' },
        steps: { type: 'number', default: 20 },
      },
    },
  });
  expect(await call(instance, { prompt: 1, output_path })).toMatchObject({ status: 422 });
});

it('sends a file, and puts its name into the node', async () => {
  const home = await aFolder();
  const workflow = JSON.parse(await readFile(join(folder, 'comfyui-workflow.json'), 'utf8'));
  workflow['10'] = { class_type: 'LoadImage', inputs: { image: 'example.png' } };
  await writeFile(join(home, 'comfyui-workflow.json'), JSON.stringify(workflow));
  const text = aWorkflow('    image: {node: "10", input: image, file: true}\n');
  const instance = await startWrapped(text, { folder: home });
  finishAll(saved);
  await instance.put('media://job/in.png', 'PIXELS');
  expect(await call(instance, { output_path, image: 'media://job/in.png' })).toMatchObject({ status: 200 });
  expect(server.uploads[0]).toContain('PIXELS');
  expect(server.prompts[0]?.workflow['10']?.inputs.image).toBe('in/uploaded-1.png');
});

it('reports progress of all nodes', async () => {
  const instance = await startWrapped(aWorkflow(), { folder });
  const lines = callInLines(instance, { output_path });
  const prompt = await waitFor('the prompt', async () =>
    server.prompts.find((one) => server.isFollowed(one)),
  );
  server.tell(prompt, 'execution_cached', { nodes: ['4', '5'] });
  server.tell(prompt, 'progress', { node: '3', value: 10, max: 20 });
  server.finish(prompt, saved);
  const [first] = await lines;
  expect(first).toMatchObject({ progress: (2 + 0.5) / 7 });
});

it('leaves out frames of the socket that it does not know, and reports on', async () => {
  const instance = await startWrapped(aWorkflow(), { folder });
  const lines = callInLines(instance, { output_path });
  const prompt = await waitFor('the prompt', async () =>
    server.prompts.find((one) => server.isFollowed(one)),
  );
  for (const text of [
    '',
    'ping',
    '{',
    'null',
    '[]',
    '7',
    '{"type":"executing"}',
    '{"type":"progress","data":[]}',
  ]) {
    server.tellText(prompt, text);
  }
  server.tell(prompt, 'executing', { node: { toString: 1, valueOf: 1 } });
  server.tell(prompt, 'execution_cached', { nodes: [{}, null, 'none', '__proto__', '4', '5'] });
  server.tell(prompt, 'progress', { node: '3', value: 10, max: 0 });
  server.finish(prompt, saved);
  const all = await lines;
  expect(all.at(-1)).toMatchObject({ ok: true });
  expect(await call(instance, { output_path: 'none' })).toMatchObject({ status: 422 });
});

it('works without a socket', async () => {
  server.refuseSockets();
  const instance = await startWrapped(aWorkflow(), { folder });
  finishAll(saved);
  expect(await call(instance, { output_path })).toMatchObject({ status: 200 });
});

it('interrupts the prompt of a caller that leaves, and removes a waiting one from the queue', async () => {
  const instance = await startWrapped(aWorkflow(), { folder });
  const [first, second] = [new AbortController(), new AbortController()];
  const left = [call(instance, { output_path }, { signal: first.signal }).catch(() => 'left')];
  await waitFor('the first prompt', async () => server.prompts.length === 1);
  left.push(call(instance, { output_path }, { signal: second.signal }).catch(() => 'left'));
  await waitFor('the second prompt', async () => server.prompts.length === 2);
  second.abort();
  await waitFor('its removal', async () => server.prompts[1]?.state === 'deleted');
  expect(server.prompts[0]?.state).toBe('running');
  first.abort();
  await waitFor('the interrupt', async () => server.prompts[0]?.state === 'ended');
  expect(await Promise.all(left)).toEqual(['left', 'left']);
});

it.each([
  [
    {
      exception_message: 'bad size',
      exception_type: 'ValueError',
      node_id: '5',
      node_type: 'EmptyLatentImage',
    },
    422,
    'node 5 (EmptyLatentImage): bad size',
  ],
  [
    {
      exception_message: 'no memory',
      exception_type: 'torch.OutOfMemoryError',
      node_id: '3',
      node_type: 'KSampler',
    },
    502,
    'node 3 (KSampler): no memory',
  ],
])('turns the fault %j into %i', async (exception, status, error) => {
  const instance = await startWrapped(aWorkflow(), { folder });
  const answer = call(instance, { output_path });
  server.fail(await waitFor('the prompt', async () => server.prompts[0]), exception);
  expect(await answer).toMatchObject({ status, body: { error } });
});

it('passes on why ComfyUI refuses a prompt, and reports a workflow that saves nothing', async () => {
  const instance = await startWrapped(aWorkflow(), { folder });
  expect(await call(instance, { prompt: 'refused', output_path })).toMatchObject({
    status: 422,
    body: { error: expect.stringContaining('Value not in list') },
  });
  finishAll({});
  expect(await call(instance, { output_path })).toMatchObject({
    status: 502,
    body: { error: 'the workflow has saved no file' },
  });
});

it('finds the prompt of a lost call by its key, and submits again after a restart of ComfyUI', async () => {
  const instance = await startWrapped(aWorkflow(), { folder });
  const leaving = new AbortController();
  const lost = call(instance, { output_path }, { key: 'k', signal: leaving.signal }).catch(() => 'lost');
  const prompt = await waitFor('the prompt', async () => server.prompts[0]);
  leaving.abort();
  await lost;
  server.finish(prompt, saved);
  expect(await call(instance, { output_path }, { key: 'k' })).toMatchObject({ status: 200 });
  expect(server.prompts.length).toBe(1);
  server.restart();
  finishAll(saved);
  expect(await call(instance, { output_path }, { key: 'k' })).toMatchObject({ status: 200 });
  expect(server.prompts.length).toBe(1);
});

it('refuses nodes and inputs that the workflow does not have, and a workflow of the editor', async () => {
  const text = aWorkflow(
    '    a: {node: "66", input: text}\n    b: {node: "3", input: stepz}\n    c: {node: "3", input: model}\n',
  );
  const findings = findingsOf(text, {}, folder);
  expect(linesOf(findings)).toEqual([
    '14 field_unknown: the workflow has no node 66; there are 3, 4, 5, 6, 7, 8, 9',
    expect.stringMatching(/^15 field_unknown: node 3 has no input stepz; there are seed, steps/),
    '16 field_connected: the input model of node 3 is filled by node 4',
  ]);
  expect(findings[1]?.suggestion).toBe('did you mean "steps"?');
  const home = await aFolder();
  await writeFile(join(home, 'comfyui-workflow.json'), '{"nodes": [], "links": []}');
  expect(linesOf(findingsOf(aWorkflow(), {}, home))).toEqual([
    '8 workflow_invalid: the file is a workflow of the editor',
  ]);
});
