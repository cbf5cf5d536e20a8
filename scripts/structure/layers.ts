/**
 * The layers of src/, bottom to top: one row each lists what it may import of Capstan and which packages it may use. An
 * import that a row does not name is forbidden, and a folder without a row too. `types` are imported as types alone.
 */
export interface Layer {
  readonly imports: readonly string[];
  readonly types?: readonly string[];
  /** Packages; `node:` stands for all that Node brings. */
  readonly packages: readonly string[];
}

export const layers: Readonly<Record<string, Layer>> = {
  contracts: { imports: [], packages: ['zod'] },
  errors: { imports: ['contracts'], packages: ['node:'] },
  core: { imports: ['contracts'], packages: ['re2js', 'semver'] },
  schemas: {
    imports: ['contracts', 'core'],
    packages: ['ajv', 'ajv-formats', 'lru-cache', 'node:', 're2js'],
  },
  definitions: {
    imports: ['contracts', 'core', 'errors', 'schemas'],
    packages: ['lru-cache', 'node:', 'yaml', 'zod'],
  },
  'library-internals': {
    imports: [],
    types: ['core'],
    packages: ['@opentelemetry/sdk-trace-node', '@temporalio/client', 'undici'],
  },
  db: { imports: ['contracts', 'library-internals'], packages: ['knex', 'node:', 'pg'] },
  clients: {
    imports: ['contracts', 'core', 'errors', 'guarded-dial', 'library-internals'],
    packages: [
      '@temporalio/client',
      '@temporalio/common',
      '@temporalio/envconfig',
      '@temporalio/proto',
      '@temporalio/worker',
      'jose',
      'lru-cache',
      'node:',
      'openid-client',
      'undici',
      'zod',
    ],
  },
  parts: {
    imports: ['clients', 'contracts', 'core', 'db', 'definitions', 'errors', 'media-store', 'schemas'],
    types: ['config'],
    packages: ['lru-cache', 'node:', 'p-limit', 'pino', 'semver', 'uuid', 'zod'],
  },
  context: {
    imports: [],
    types: ['clients', 'config', 'core', 'db', 'guarded-dial', 'parts', 'schemas'],
    packages: ['pino'],
  },
  'use-cases': {
    imports: ['clients', 'contracts', 'core', 'db', 'definitions', 'errors', 'parts', 'schemas'],
    types: ['config', 'context', 'guarded-dial'],
    packages: ['lru-cache', 'node:', 'p-limit', 'pino', 'zod'],
  },
  telemetry: {
    imports: ['core', 'library-internals'],
    packages: [
      '@opentelemetry/api',
      '@opentelemetry/exporter-trace-otlp-proto',
      '@opentelemetry/sdk-trace-node',
      'node:',
      'prom-client',
    ],
  },
  activities: {
    imports: ['core', 'errors', 'use-cases'],
    types: ['context', 'contracts'],
    packages: ['@temporalio/activity'],
  },
  workflows: {
    imports: ['core'],
    types: ['activities', 'contracts'],
    packages: ['@temporalio/common', '@temporalio/workflow'],
  },
  api: {
    imports: ['contracts', 'core', 'definitions', 'errors', 'parts', 'use-cases'],
    types: ['config', 'context'],
    packages: [
      '@koa/router',
      '@modelcontextprotocol/server',
      'koa',
      'lru-cache',
      'node:',
      'p-limit',
      'pino',
      'zod',
      'zod-openapi',
    ],
  },
  config: { imports: ['clients', 'core', 'errors', 'guarded-dial'], packages: ['node:', 'zod'] },
  processes: {
    imports: [
      'clients',
      'core',
      'db',
      'errors',
      'guarded-dial',
      'library-internals',
      'media-store',
      'parts',
      'schemas',
      'use-cases',
    ],
    types: ['config', 'context', 'telemetry'],
    packages: ['@temporalio/worker', 'node:', 'pino'],
  },
  server: { imports: ['api', 'config', 'parts', 'processes', 'telemetry', 'use-cases'], packages: ['node:'] },
  worker: {
    imports: ['activities', 'config', 'processes', 'telemetry'],
    packages: ['@temporalio/envconfig', '@temporalio/worker', 'node:'],
  },
  'mock-run': { imports: ['contracts', 'core', 'definitions', 'schemas'], packages: ['zod'] },
  dev: {
    imports: ['clients', 'config', 'contracts', 'core', 'errors', 'media-store', 'use-cases'],
    packages: [
      '@temporalio/client',
      '@temporalio/envconfig',
      '@temporalio/worker',
      'chokidar',
      'node:',
      'pg',
      'semver',
    ],
  },
  box: {
    imports: ['capability', 'contracts', 'core', 'definitions', 'dev', 'errors', 'wrap'],
    packages: ['chokidar', 'node:'],
  },
  // By HTTP towards the API; `server`, `worker`, `migrate`, `move`, `purge` and `recover` alone are the programs themselves.
  cli: {
    imports: [
      'box',
      'capability',
      'config',
      'contracts',
      'core',
      'definitions',
      'dev',
      'errors',
      'mock-run',
      'processes',
      'server',
      'worker',
      'wrap',
    ],
    packages: ['@modelcontextprotocol/server', 'commander', 'node:', 'undici', 'zod'],
  },
};

/** Folders whose own folders may import one another in one direction only. */
export const oneWayFolders: readonly string[] = ['src/parts', 'src/use-cases'];
