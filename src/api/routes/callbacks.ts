/** Answers of capabilities that come later. The address grants access, so that instances need no key. */
import { z } from 'zod';
import { receiveLaterAnswer } from '../../use-cases/callbacks/receipt.ts';
import { byteStream } from '../input.ts';
import { type Route, route } from '../route.ts';

export const callbackRoutes: readonly Route[] = [
  route('POST /v1/callbacks/{token}', {
    operation: 'answer_later',
    tag: 'calls',
    summary: 'Answer a call that was accepted with 202',
    description:
      'For instances: the address is the one in the header `X-Callback-Url` of the call. The body is what `/exec` would have answered: `{"ok": true, "output": …}`, or the output itself. A failure is `{"ok": false, "error": …}` with `status` (422 where absent), `retry_after_s`, `error_code` and the fields of a failure report. It takes one answer. After the deadline, the answer is refused with 410, and its cost is settled.',
    scope: null,
    params: z.object({ token: z.string().max(200) }),
    body: byteStream,
    responses: { 204: 'empty' },
    errors: ['body_too_large', 'callback_answered', 'callback_late', 'unavailable'],
    handle: async (ctx, { params, body }) => {
      await receiveLaterAnswer(ctx, params.token, body.stream);
      return { status: 204 };
    },
  }),
];
