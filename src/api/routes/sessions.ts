/** Who is signed in, and ending it. */
import { z } from 'zod';
import { SessionList, SessionQuery, SessionRevocation, SessionsRevoked } from '../../contracts/session.ts';
import { AppError } from '../../errors/app-error.ts';
import type { Services } from '../../services/services.ts';
import { json } from '../body-kind.ts';
import { type Route, route } from '../route.ts';

const SessionPath = z.object({ id: z.string().min(1).max(128) });

type AccessServices = Pick<Services, 'access'>;

export function sessionAdminRoutes(services: AccessServices): Route[] {
  return [listSessions(services), revokeUser(services), revokeSession(services)];
}

function listSessions({ access }: AccessServices): Route {
  return route({
    operation: 'list_sessions',
    method: 'GET',
    path: '/v1/sessions',
    tag: 'session',
    summary: 'List the browsers that are signed in, newest first',
    description:
      'Of keys and people that share a project with the calling key. `user` is the id of a person or key, an e-mail address, or the subject at the provider.',
    auth: 'key',
    scope: 'admin',
    query: SessionQuery,
    responses: { 200: SessionList },
    handle: async ({ caller, query }) => ({ status: 200, body: await access.listSessions(caller, query) }),
  });
}

function revokeUser({ access }: AccessServices): Route {
  return route({
    operation: 'revoke_sessions',
    method: 'POST',
    path: '/v1/sessions/revoke',
    tag: 'session',
    summary: 'End all sessions of a user, everywhere within 5 seconds',
    description:
      'Open streams too. Who may sign in can do so again: to keep a person out, revoke their key, whose id is the person’s.',
    auth: 'key',
    scope: 'admin',
    body: json(SessionRevocation),
    responses: { 200: SessionsRevoked },
    handle: async ({ caller, body }) => ({
      status: 200,
      body: { revoked: await access.revokeSessions(caller, body) },
    }),
  });
}

function revokeSession({ access }: AccessServices): Route {
  return route({
    operation: 'revoke_session',
    method: 'DELETE',
    path: '/v1/sessions/{id}',
    tag: 'session',
    summary: 'End a session, everywhere within 5 seconds',
    auth: 'key',
    scope: 'admin',
    params: SessionPath,
    responses: { 204: 'empty' },
    handle: async ({ caller, params: { id } }) => {
      if ((await access.revokeSessions(caller, { sessionId: id })) === 0)
        throw new AppError('not_found', `no session ${id}`);
      return { status: 204 };
    },
  });
}
