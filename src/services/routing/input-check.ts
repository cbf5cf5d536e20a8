/** Whether an instance's own schema accepts an input. Its spec is read first where that has not happened yet. */
import type { JsonObject } from '../../contracts/primitives.ts';
import type { InstanceSnapshot } from '../../core/routing/types.ts';
import type { InstanceFeed } from '../registry/instance-feed.ts';
import type { RegistryService } from '../registry/registry-service.ts';
import type { SchemaValidator } from '../registry/schema-validator.ts';

export type SchemaError = { readonly pointer: string; readonly message: string };

/** unusable: its spec cannot be read, so nothing is known. */
export type InputCheck = (
  instance: InstanceSnapshot,
  input: JsonObject,
) => Promise<'accepted' | 'refused' | 'unusable'>;

/** @param onRefused learns what the schema says against the input */
export const createInputCheck =
  (
    {
      registry,
      feed,
      validator,
    }: {
      readonly registry: Pick<RegistryService, 'vet'>;
      readonly feed: InstanceFeed;
      readonly validator: SchemaValidator;
    },
    onRefused: (errors: readonly SchemaError[]) => void,
  ): InputCheck =>
  async (instance, input) => {
    const known = instance.spec_digest === null ? await vetNow(instance) : instance;
    if (known === null || known.spec_digest === null) return 'unusable';
    const result = await validator.validateInput(known.name, known.version, known.spec_digest, input);
    if (!result.ok) onRefused(result.errors);
    return result.ok ? 'accepted' : 'refused';

    async function vetNow({ instance_id, name }: InstanceSnapshot): Promise<InstanceSnapshot | null> {
      const verdict = await registry.vet(instance_id);
      await feed.refresh();
      if (verdict !== 'usable') return null;
      return feed.candidates(name).find((candidate) => candidate.instance_id === instance_id) ?? null;
    }
  };
