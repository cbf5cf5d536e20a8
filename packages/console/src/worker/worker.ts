/**
 * Checks a definition and runs it with mocks, in a web worker. Schemas are compiled to code here, which the page must
 * not do; in return the worker has no network access.
 */
import { describeKeys } from '@capstan/core/definitions/findings';
import { checkText } from './check-text.ts';
import type { WorkerAnswer, WorkerQuestion } from './messages.ts';
import { tryText } from './try-text.ts';

const place = self as unknown as {
  onmessage: ((event: MessageEvent<WorkerQuestion>) => void) | null;
  postMessage: (answer: WorkerAnswer) => void;
};

async function answer(question: WorkerQuestion): Promise<WorkerAnswer> {
  if (question.kind === 'keys') return { id: question.id, kind: 'keys', keys: describeKeys() };
  if (question.kind === 'check')
    return { id: question.id, kind: 'check', ...checkText(question.text, question.specs) };
  const { id } = question;
  const tried = await tryText(question).catch((error: unknown) => ({
    result: null,
    problems: [error instanceof Error ? error.message : String(error)],
    differences: null,
  }));
  return { id, kind: 'try', ...tried };
}

place.onmessage = ({ data }) => void answer(data).then((one) => place.postMessage(one));
