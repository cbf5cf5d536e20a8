/** Secrets of a project: steps name them, and instances receive them. No answer holds a value. */
import { z } from 'zod';
import { Instant, listOf } from './primitives.ts';

export const secretLimits = {
  perProject: 100,
  /** Characters. A shorter value would be found in ordinary texts, and could not be taken out of answers. */
  leastLength: 8,
  /** UTF-8. */
  bytes: 65_536,
  /** UTF-8, of all values that one step names: answers are searched for each of their forms. */
  bytesOfStep: 65_536,
  /** Of either list of a secret. */
  patterns: 100,
} as const;

/** Names that no path of an expression may hold. */
const forbidden = ['constructor', 'prototype'];

export const SecretName = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,63}$/, {
    error: 'a lower-case letter, then up to 63 of a-z, 0-9, _ and -',
  })
  .refine((name) => !forbidden.includes(name), { error: `none of ${forbidden.join(', ')}` });

/** `publish.web`, `model.*`, `*`. */
const CapabilityPattern = z.string().regex(/^(?:[A-Za-z0-9_.-]{1,128}\*?|\*)$/, {
  error: 'the name of a capability, or the beginning of names with * at the end, such as model.*',
});

/** `api.example.com`, `*.example.com`, `10.0.0.7:8080`. */
const HostPattern = z
  .string()
  .max(260)
  .regex(/^(?:\*\.)?(?:[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?$/, {
    error: 'a host in lower case, such as api.example.com, *.example.com or 10.0.0.7:8080',
  });

const receivers = {
  capabilities: z.array(CapabilityPattern).min(1).max(secretLimits.patterns).meta({
    description: 'The capabilities whose steps may name it: names, or `PREFIX*`.',
  }),
  hosts: z.array(HostPattern).max(secretLimits.patterns).meta({
    description:
      'The hosts whose instances receive it, of any project: `HOST`, `HOST:PORT` or `*.DOMAIN`. Empty: the instances that this project registered.',
  }),
};

export const SecretRequest = z
  .strictObject({
    value: z
      .string()
      .min(secretLimits.leastLength)
      .refine((text) => new TextEncoder().encode(text).length <= secretLimits.bytes, {
        error: `at most ${secretLimits.bytes} bytes of UTF-8`,
      })
      .refine((text) => !/\p{Cs}/u.test(text), { error: 'whole characters, not half of a pair' })
      .meta({ description: `A text of at least ${secretLimits.leastLength} characters and at most 64 KiB.` }),
    capabilities: receivers.capabilities,
    hosts: receivers.hosts.default([]),
  })
  .meta({ id: 'SecretRequest' });
export type SecretRequest = z.infer<typeof SecretRequest>;

export const Secret = z
  .strictObject({
    name: SecretName,
    /** 1 when it was first set; each new value adds one. */
    version: z.number().int(),
    ...receivers,
    /** A key or a person. */
    set_by: z.string(),
    set_at: Instant,
    /** To ten seconds; null: no instance has received it. */
    last_used_at: Instant.nullable(),
  })
  .meta({ id: 'Secret' });
export type Secret = z.infer<typeof Secret>;
export const SecretList = listOf(Secret)
  .extend({
    /** False: this process has no `PAYLOAD_KEYS`, so no secret can be stored. */
    can_be_set: z.boolean(),
  })
  .meta({ id: 'SecretList' });
