import { randomUUID } from 'node:crypto';
import type { ApiMiddleware } from './request-state.ts';

const accepted = /^[A-Za-z0-9._:-]{1,128}$/;

/** Takes a sane `X-Request-Id` over or makes one; every answer, log line and problem carries it. */
export const requestId: ApiMiddleware = (ctx, next) => {
  const sent = ctx.get('x-request-id');
  ctx.state.request_id = accepted.test(sent) ? sent : randomUUID();
  ctx.set('X-Request-Id', ctx.state.request_id);
  return next();
};
