/**
 * A compose file as the reference library of Docker Compose reads it: validated by the schema of the specification,
 * consistent, with variables, merges and extensions resolved.
 */
import { dirname } from 'node:path';
import { z } from 'zod';
import { runCommand } from '../package/run-command.ts';
import { ensureGoProgram } from '../tools/ensure-program.ts';

const Mounted = z.object({ source: z.string(), target: z.string() });

export const ComposeService = z.object({
  image: z.string(),
  entrypoint: z.array(z.string()).nullish(),
  command: z.array(z.string()).nullish(),
  user: z.string().optional(),
  environment: z.record(z.string(), z.string().nullable()).default({}),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
  healthcheck: z.object({ test: z.array(z.string()) }).optional(),
  restart: z.string().optional(),
  read_only: z.boolean().default(false),
  cap_drop: z.array(z.string()).default([]),
  security_opt: z.array(z.string()).default([]),
  logging: z.object({ driver: z.string() }).optional(),
  profiles: z.array(z.string()).default([]),
  ports: z.array(z.object({ host_ip: z.string().optional(), published: z.string().optional() })).default([]),
  volumes: z.array(Mounted.extend({ type: z.string(), read_only: z.boolean().default(false) })).default([]),
  configs: z.array(Mounted).default([]),
  secrets: z.array(Mounted).default([]),
  tmpfs: z.array(z.string()).default([]),
});
export type ComposeService = z.infer<typeof ComposeService>;

const Files = z.record(z.string(), z.object({ file: z.string() })).default({});

export const ComposeProject = z.object({
  services: z.record(z.string(), ComposeService),
  volumes: z.record(z.string(), z.unknown()).default({}),
  configs: Files,
  secrets: Files,
});
export type ComposeProject = z.infer<typeof ComposeProject>;

const reader = {
  module: 'github.com/compose-spec/compose-go/v2/cmd',
  version: '2.16.2',
  name: 'cmd',
  label: 'compose-go',
} as const;

/** @throws Error with the words of the library when the file is invalid */
export async function readProject(file: string): Promise<ComposeProject> {
  const program = await ensureGoProgram(reader);
  // Paths in the file are relative to its folder.
  const printed = await runCommand([program, '--format', 'json', file], { cwd: dirname(file) });
  return ComposeProject.parse(JSON.parse(printed));
}

/** Those that start with `docker compose up`, each after those that it depends on. */
export function orderServices({ services }: ComposeProject): readonly string[] {
  const ordered: string[] = [];
  const add = (name: string): void => {
    if (ordered.includes(name)) return;
    Object.keys(services[name]?.depends_on ?? {}).forEach(add);
    ordered.push(name);
  };
  for (const [name, { profiles }] of Object.entries(services)) if (profiles.length === 0) add(name);
  return ordered;
}

/** True when it ends by itself, and others wait for that. */
export function isTask(name: string, { services }: ComposeProject): boolean {
  return Object.values(services).some(
    ({ depends_on }) => depends_on[name]?.condition === 'service_completed_successfully',
  );
}
