/** Instances and capabilities, and the publishers of a name. */

import {
  CallsSummary,
  CallsSummaryQuery,
  CapabilityDetail,
  CapabilityList,
  DeregisterAnswer,
  DeregisterRequest,
  DrainRequest,
  EndpointRequest,
  HeartbeatAnswer,
  HeartbeatRequest,
  Instance,
  InstanceList,
  InstanceState,
  Publisher,
  PublisherList,
  PublisherRequest,
  Registration,
  SharingRequest,
} from '@capstan/core/contracts/capability';
import { CallsHealth, HealthQuery } from '@capstan/core/contracts/health';
import { ListQuery, Tag } from '@capstan/core/contracts/primitives';
import { z } from 'zod';
import { requireName } from '../../use-cases/access/caller.ts';
import { deregisterInstance } from '../../use-cases/registry/deregistration.ts';
import { drainInstance, requestWarmUp, undrainInstance } from '../../use-cases/registry/drain.ts';
import { takeHeartbeat } from '../../use-cases/registry/heartbeat.ts';
import { listNamePublishers, publishName } from '../../use-cases/registry/publishers.ts';
import { registerInstance } from '../../use-cases/registry/registration.ts';
import {
  getCapability,
  listCapabilities,
  readCallsHealth,
  readCallsSummary,
} from '../../use-cases/registry/registry-listing.ts';
import { shareInstances } from '../../use-cases/registry/sharing.ts';
import { json } from '../input.ts';
import { CapabilityPath } from '../parameters.ts';
import { type Route, route } from '../route.ts';

export const capabilityRoutes: readonly Route[] = [
  route('POST /v1/capabilities', {
    operation: 'register_instance',
    tag: 'capabilities',
    summary: 'Register an instance of a capability',
    description:
      'Repeatable. The answer is 201 for a new instance and 200 for a known one. A changed body raises its generation.',
    scope: 'capability:register',
    checksName: true,
    rate: 'heartbeat',
    body: json(Registration),
    responses: { 200: Instance, 201: Instance },
    handle: async (ctx, { caller, body }) => {
      requireName(caller, 'capability:register', body.name);
      const { instance, created } = await registerInstance(ctx, caller.project_id, body);
      return { status: created === 'new' ? 201 : 200, body: instance };
    },
  }),
  route('GET /v1/capabilities', {
    operation: 'list_capabilities',
    tag: 'capabilities',
    summary: 'List registered capabilities with their instances',
    scope: 'capability:read',
    description:
      'Those that serve the project: its own, and those that others share with it. `projects=all` lists those of all projects, for operators. `include=spec` adds the spec of each that serves the project: the one in use, else the latest.',
    query: ListQuery.extend({
      tag: Tag.optional(),
      state: InstanceState.optional(),
      projects: z.literal('all').optional(),
      include: z.literal('spec').optional(),
    }).strict(),
    responses: { 200: CapabilityList },
    result: (ctx, { caller, query }) => listCapabilities(ctx, caller, query),
  }),
  route('GET /v1/calls/summary', {
    operation: 'get_calls_summary',
    tag: 'calls',
    summary: 'Count calls by capability, with how many succeeded and how long they took',
    description:
      'Counts calls of the project that were sent and have ended. The default period is the last day.',
    scope: 'capability:read',
    opens: 'history',
    query: CallsSummaryQuery,
    responses: { 200: CallsSummary },
    result: (ctx, { caller, query }) => readCallsSummary(ctx, caller.project_id, query),
  }),
  route('GET /v1/calls/health', {
    operation: 'get_calls_health',
    tag: 'calls',
    summary: 'Show how the last calls of each instance have ended',
    description:
      'The newest calls of the project on each instance that serves it, of 30 days at most, with their medians of time and cost.',
    scope: 'capability:read',
    opens: 'history',
    query: HealthQuery,
    responses: { 200: CallsHealth },
    result: (ctx, { caller, query }) => readCallsHealth(ctx, caller.project_id, query),
  }),
  route('GET /v1/capabilities/{name}', {
    operation: 'get_capability',
    tag: 'capabilities',
    summary: 'Show a capability: its specs and instances',
    scope: 'capability:read',
    params: CapabilityPath,
    responses: { 200: CapabilityDetail },
    result: (ctx, { caller, params }) =>
      getCapability(ctx, { projectId: caller.project_id, name: params.name }),
  }),
  route('POST /v1/capabilities/{name}/heartbeat', {
    operation: 'send_heartbeat',
    tag: 'capabilities',
    summary: 'Send the heartbeat of an instance, every 60 seconds',
    description:
      'A heartbeat revives an instance that was down. An unknown instance is registered if its /spec and /health name the capability.',
    scope: 'capability:register',
    checksName: true,
    rate: 'heartbeat',
    params: CapabilityPath,
    body: json(HeartbeatRequest),
    responses: { 200: HeartbeatAnswer },
    handle: async (ctx, { caller, params, body }) => {
      requireName(caller, 'capability:register', params.name);
      return { status: 200, body: await takeHeartbeat(ctx, caller.project_id, { ...params, body }) };
    },
  }),
  route('DELETE /v1/capabilities/{name}', {
    operation: 'deregister_instance',
    tag: 'capabilities',
    summary: 'Take an instance out of service',
    description:
      'Repeatable. Running calls finish first; the router sends no new ones. The request is stale and has no effect if the endpoint was registered again since.',
    scope: 'capability:register',
    checksName: true,
    rate: 'heartbeat',
    params: CapabilityPath,
    body: json(DeregisterRequest),
    responses: { 200: DeregisterAnswer },
    handle: async (ctx, { caller, params, body }) => {
      requireName(caller, 'capability:register', params.name);
      return { status: 200, body: await deregisterInstance(ctx, caller, { ...params, body }) };
    },
  }),
  route('POST /v1/capabilities/{name}/drain', {
    operation: 'drain_instance',
    tag: 'capabilities',
    summary: 'Drain an instance: it gets no new calls and finishes its open ones',
    description:
      'The instance stays registered and sends heartbeats. A restart or a registration does not end the drain; `undrain` does, or the time of `until`. A repeated request replaces reason and end. For the project that registered the instance, and for operators.',
    scope: 'capability:register',
    checksName: true,
    params: CapabilityPath,
    body: json(DrainRequest),
    responses: { 200: Instance },
    result: (ctx, { caller, params, body }) => {
      requireName(caller, 'capability:register', params.name);
      return drainInstance(ctx, caller, { ...params, body });
    },
  }),
  route('POST /v1/capabilities/{name}/undrain', {
    operation: 'undrain_instance',
    tag: 'capabilities',
    summary: 'End the drain of an instance',
    description: 'Repeatable. An instance with a `warm_up` is warmed up first.',
    scope: 'capability:register',
    checksName: true,
    params: CapabilityPath,
    body: json(EndpointRequest),
    responses: { 200: Instance },
    result: (ctx, { caller, params, body }) => {
      requireName(caller, 'capability:register', params.name);
      return undrainInstance(ctx, caller, { ...params, body });
    },
  }),
  route('PUT /v1/capabilities/{name}/sharing', {
    operation: 'share_instances',
    tag: 'capabilities',
    summary: 'Set which other projects an instance serves: all, or those named',
    description:
      'Without `endpoint`, for all instances of the name that the project has now. A later registration changes it only where it names `shared_with`. For the project that registered the instance, and for operators. A project shares instances of a name that it publishes: see `PUT /v1/publishers/{name}`.',
    scope: 'capability:register',
    checksName: true,
    params: CapabilityPath,
    body: json(SharingRequest),
    responses: { 200: InstanceList },
    result: (ctx, { caller, params, body }) => {
      requireName(caller, 'capability:register', params.name);
      return shareInstances(ctx, caller, { ...params, body });
    },
  }),
  route('POST /v1/capabilities/{name}/warm', {
    operation: 'warm_instance',
    tag: 'capabilities',
    summary: 'Send an instance the warm-up call that it registered',
    description: 'The instance is `warming` until the call succeeds.',
    scope: 'capability:register',
    checksName: true,
    params: CapabilityPath,
    body: json(EndpointRequest),
    responses: { 200: Instance },
    errors: ['state_conflict'],
    result: (ctx, { caller, params, body }) => {
      requireName(caller, 'capability:register', params.name);
      return requestWarmUp(ctx, caller, { ...params, body });
    },
  }),
];

export const publisherRoutes: readonly Route[] = [
  route('GET /v1/publishers', {
    operation: 'list_publishers',
    tag: 'capabilities',
    summary: 'List which projects share instances of which names',
    scope: 'operator',
    query: ListQuery.strict(),
    responses: { 200: PublisherList },
    result: (ctx, { query }) => listNamePublishers(ctx, query),
  }),
  route('PUT /v1/publishers/{name}', {
    operation: 'set_publisher',
    tag: 'capabilities',
    summary:
      'Set the projects that may share instances of a name; those of other projects serve their own project alone',
    description:
      'Without this setting, only the first project that registers a name may share instances of it. Each project may register instances for itself under any name.',
    scope: 'operator',
    params: CapabilityPath,
    body: json(PublisherRequest),
    responses: { 200: Publisher },
    result: (ctx, { caller, params, body }) => publishName(ctx, caller, { ...params, ...body }),
  }),
];
