import type { Hook, HookSignature } from '@capstan/core/contracts/hook';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, useId, useState } from 'react';
import { createHook, replaceHook } from '../api/hooks.ts';
import { AnswerError } from '../api/problem-error.ts';
import { Field, PipelineTarget } from '../form/pipeline-target.tsx';
import { writeChoice } from '../form/target-model.ts';
import { Dialog } from '../shared/dialog.tsx';
import { areaClass, Button, fieldClass } from '../shared/parts.tsx';
import { ProblemView } from '../shared/problem-view.tsx';
import {
  areAllShown,
  everyBody,
  faultsByField,
  type HookFaults,
  type HookField,
  toHookRequest,
  toHookSettings,
  writeJob,
} from './form-model.ts';
import { signatureWords } from './hook-model.ts';

const signatures = Object.keys(signatureWords) as readonly HookSignature[];

/** Begins as JSON and is none: it is not sent. */
class BrokenJob extends Error {}

function faultsOf(error: Error | null): HookFaults {
  if (error instanceof BrokenJob) return { job: error.message };
  return error instanceof AnswerError ? faultsByField(error.problem.errors ?? []) : {};
}

/** The error has no place in the form, or not all of it. */
function isLeft(error: Error | null): error is Error {
  if (error === null || error instanceof BrokenJob) return false;
  return !(error instanceof AnswerError && areAllShown(error.problem.errors ?? []));
}

function required<Request>(request: Request | null): Request {
  if (request !== null) return request;
  throw new BrokenJob(
    'This begins as a JSON object and is none. Write one expression, or an object in JSON.',
  );
}

interface HookFormProps {
  /** Null: a new one. */
  readonly of: Hook | null;
  /** @param secret of a new hook; null: it was changed */
  readonly onDone: (secret: string | null) => void;
  readonly onClose: () => void;
}

export function HookForm({ of: hook, onDone, onClose }: HookFormProps): ReactElement {
  const queries = useQueryClient();
  const id = useId();
  const [pipeline, setPipeline] = useState(hook?.pipeline ?? '');
  const [signature, setSignature] = useState<HookSignature>(hook?.signature ?? 'github');
  /** Fields that were changed since the server judged them. */
  const [changed, setChanged] = useState<ReadonlySet<string>>(new Set());
  const save = useMutation({
    mutationFn: async (form: FormData) => {
      const field = (name: string): string => String(form.get(name) ?? '');
      const written = { field, pipeline, signature, former: hook ?? undefined };
      if (hook === null) return (await createHook(required(toHookRequest(written)))).secret;
      await replaceHook(hook.name, required(toHookSettings(written)));
      return null;
    },
    onMutate: () => setChanged(new Set()),
    onSuccess: async (secret) => {
      await queries.invalidateQueries({ queryKey: ['hooks'], exact: true });
      onDone(secret);
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    save.mutate(new FormData(event.currentTarget));
  };
  const note = ({ target }: FormEvent<HTMLFormElement>): void =>
    setChanged((former) => new Set([...former, (target as HTMLInputElement).name]));
  const faults = faultsOf(save.error);
  const faultOf = (name: HookField): string | undefined => (changed.has(name) ? undefined : faults[name]);
  return (
    <Dialog
      title={hook === null ? 'New hook' : `Edit ${hook.name}`}
      onClose={onClose}
      footer={
        <Button look="primary" type="submit" form={id} disabled={save.isPending}>
          {hook === null ? 'Create hook' : 'Save'}
        </Button>
      }
    >
      <form id={id} onSubmit={submit} onChange={note} className="flex flex-col gap-3 text-sm">
        {isLeft(save.error) ? <ProblemView error={save.error} /> : null}
        {hook === null ? <TextField name="name" label="Name" required fault={faultOf('name')} /> : null}
        <PipelineTarget
          pipeline={pipeline}
          versionLabel="Version of each run"
          choice={hook?.pipeline === pipeline ? writeChoice(hook) : ''}
          onChoose={setPipeline}
        />
        <Fault text={faultOf('pipeline') ?? faultOf('choice')} />
        <Field label="How the sender proves itself">
          <select
            name="signature"
            className={fieldClass}
            value={signature}
            onChange={({ target }) =>
              setSignature(signatures.find((one) => one === target.value) ?? signature)
            }
          >
            {signatures.map((one) => (
              <option key={one} value={one}>
                {signatureWords[one]}
              </option>
            ))}
          </select>
        </Field>
        <Fault text={faultOf('signature')} />
        {hook === null ? <SecretField signature={signature} fault={faultOf('secret')} /> : null}
        <Templates hook={hook} faultOf={faultOf} />
      </form>
    </Dialog>
  );
}

interface SecretFieldProps {
  readonly signature: HookSignature;
  readonly fault: string | undefined;
}

function SecretField({ signature, fault }: SecretFieldProps): ReactElement {
  return (
    <TextField
      name="secret"
      label="Secret"
      type="password"
      autoComplete="new-password"
      hint={
        signature === 'slack'
          ? 'The signing secret of the Slack app.'
          : 'Leave it empty for a new one, which is shown once.'
      }
      fault={fault}
    />
  );
}

interface TemplatesProps {
  readonly hook: Hook | null;
  readonly faultOf: (name: HookField) => string | undefined;
}

/** All three read `body` and `headers` of a delivery. */
function Templates({ hook, faultOf }: TemplatesProps): ReactElement {
  return (
    <>
      <TextField
        name="job"
        label="Job"
        isLong
        defaultValue={writeJob(hook?.job ?? everyBody)}
        hint="One expression over body and headers, or a JSON object whose values have expressions."
        fault={faultOf('job')}
      />
      <TextField
        name="filter"
        label="Filter"
        defaultValue={hook?.filter}
        placeholder={'body.ref == "refs/heads/main"'}
        hint="If it is false, the delivery starts no run."
        fault={faultOf('filter')}
      />
      <TextField
        name="key"
        label="Key"
        defaultValue={hook?.key}
        placeholder="{{ body.id }}"
        hint="Deliveries with the same key within 24 hours start one run. Empty: the id of the delivery."
        fault={faultOf('key')}
      />
    </>
  );
}

interface HookTextProps {
  readonly name: HookField;
  readonly label: string;
  readonly hint?: string;
  readonly fault: string | undefined;
  readonly isLong?: boolean;
  readonly type?: 'password';
  readonly autoComplete?: string;
  readonly required?: boolean;
  readonly defaultValue?: string | undefined;
  readonly placeholder?: string;
}

function TextField({ label, hint, fault, isLong = false, ...control }: HookTextProps): ReactElement {
  const id = useId();
  const about = `${id}-about`;
  const common = {
    ...control,
    id,
    'aria-invalid': fault !== undefined,
    'aria-describedby': about,
    spellCheck: false,
  };
  const look = control.name === 'name' ? '' : 'font-mono';
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id}>{label}</label>
      {isLong ? (
        <textarea {...common} rows={5} className={`${areaClass} aria-invalid:border-failed`} />
      ) : (
        <input {...common} className={`${fieldClass} w-full aria-invalid:border-failed ${look}`} />
      )}
      <div id={about}>
        <Fault text={fault} />
        {hint === undefined ? null : <p className="text-xs text-muted">{hint}</p>}
      </div>
    </div>
  );
}

function Fault({ text }: { readonly text: string | undefined }): ReactElement | null {
  return text === undefined ? null : (
    <p role="alert" className="break-words text-xs text-failed">
      {text}
    </p>
  );
}
