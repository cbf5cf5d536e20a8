/** Hosts: machines whose slots the calls of several instances share. */

import { Host, HostDrainRequest, HostList, HostRequest } from '@capstan/core/contracts/host-list';
import { ListQuery } from '@capstan/core/contracts/primitives';
import { z } from 'zod';
import { drainHost, listProjectHosts, undrainHost, warmUpHost } from '../../use-cases/registry/hosts.ts';
import { json } from '../input.ts';
import { HostPath } from '../parameters.ts';
import { type Route, route } from '../route.ts';

export const hostRoutes: readonly Route[] = [
  route('GET /v1/hosts', {
    operation: 'list_hosts',
    tag: 'capabilities',
    summary: 'List the hosts that instances of the project share, with their slots',
    description:
      'An instance names its host when it registers. `projects=all` lists the hosts of all projects, for operators.',
    scope: 'capability:read',
    query: ListQuery.extend({ projects: z.literal('all').optional() }).strict(),
    responses: { 200: HostList },
    result: (ctx, { caller, query }) => listProjectHosts(ctx, caller, query),
  }),
  route('POST /v1/hosts/{name}/drain', {
    operation: 'drain_host',
    tag: 'capabilities',
    summary: 'Drain a host: its instances get no new calls and finish their open ones',
    description:
      'Instances that register on the host later are drained too. An instance with a drain of its own keeps that. A repeated request replaces reason and end. For keys of the project that may register all capabilities of the host, and for operators.',
    scope: 'capability:register',
    checksName: true,
    params: HostPath,
    body: json(HostDrainRequest),
    responses: { 200: Host },
    result: (ctx, { caller, params, body }) => drainHost(ctx, caller, { ...params, body }),
  }),
  route('POST /v1/hosts/{name}/undrain', {
    operation: 'undrain_host',
    tag: 'capabilities',
    summary: 'End the drain of a host, and of the instances that were drained with it',
    description: 'Repeatable. Instances with a `warm_up` are warmed up first.',
    scope: 'capability:register',
    checksName: true,
    params: HostPath,
    body: json(HostRequest),
    responses: { 200: Host },
    result: (ctx, { caller, params, body }) => undrainHost(ctx, caller, { ...params, body }),
  }),
  route('POST /v1/hosts/{name}/warm', {
    operation: 'warm_host',
    tag: 'capabilities',
    summary: 'Send the instances of a host the warm-up calls that they registered',
    description: 'Each is `warming` until its call succeeds.',
    scope: 'capability:register',
    checksName: true,
    params: HostPath,
    body: json(HostRequest),
    responses: { 200: Host },
    errors: ['state_conflict'],
    result: (ctx, { caller, params, body }) => warmUpHost(ctx, caller, { ...params, body }),
  }),
];
