/** A request that a session's end refuses leads to the sign-in at once. */
import { expect, test } from 'vitest';
import { AnswerError } from '../../console/src/api/problem-error.ts';
import { createQueries } from '../../console/src/api/queries.ts';
import { sessionQuery } from '../../console/src/api/session.ts';

test.each([
  [401, true],
  [403, false],
  [404, false],
])('a refusal with %d asks for the session again: %s', async (status, isAsked) => {
  const queries = createQueries();
  queries.setQueryData(sessionQuery.queryKey, {} as never);
  const refuse = () => Promise.reject(new AnswerError(status, {}));
  await queries.fetchQuery({ queryKey: ['runs'], queryFn: refuse }).catch(() => undefined);
  expect(queries.getQueryState(sessionQuery.queryKey)?.isInvalidated).toBe(isAsked);
});
