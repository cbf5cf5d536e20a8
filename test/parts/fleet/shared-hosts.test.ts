import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { joinHost } from '../../../src/db/instance/host.ts';
import type { InstanceColumns } from '../../../src/db/instance/instance.ts';
import { createFleetPoller, type FleetPoller } from '../../../src/parts/fleet/fleet-poller.ts';
import { newId } from '../../../src/parts/ids.ts';
import { useDatabase } from '../../support/database.ts';
import { aClaim, anInstance, aProject, aSlotWish, claimAttempt } from '../../support/factories.ts';
import { silentLogger } from '../../use-cases/registry/registry-bench.ts';

const { db } = useDatabase(2);

interface Box {
  readonly owner_project: string;
  readonly host: string;
  readonly host_slots: number;
}

async function aBox(host_slots: number): Promise<Box> {
  const { project_id: owner_project } = await aProject(db);
  const host = `box-${randomUUID()}`;
  await joinHost(db, owner_project, { name: host, slots: host_slots });
  return { owner_project, host, host_slots };
}

function onBox(box: Box, instance: Parameters<typeof anInstance>[1] = {}): Promise<InstanceColumns> {
  return anInstance(db, { takes: 1, max_concurrency: 4, name: newId('call'), ...box, ...instance });
}

function claimElsewhere(instance: InstanceColumns) {
  const run = { run_id: '', project_id: instance.owner_project };
  return claimAttempt(db, aClaim(run, instance, { step: null, is_first: true, key: newId('call') }));
}

/** Polls only on command. */
async function aPoller(): Promise<FleetPoller> {
  const fleet = createFleetPoller({ db, intervalMs: 3_600_000, logger: silentLogger });
  await fleet.refresh();
  return fleet;
}

function roomOf(fleet: FleetPoller, ...instances: readonly InstanceColumns[]) {
  return instances.map(({ instance_id }) => fleet.find(instance_id)?.host_room);
}

describe('the room of a host', () => {
  it('is less by each claim and more by each release of the process, on any of its instances', async () => {
    const box = await aBox(4);
    const [image, video] = [await onBox(box), await onBox(box, { takes: 2 })];
    const alone = await anInstance(db);
    const fleet = await aPoller();
    expect(roomOf(fleet, image, video, alone)).toEqual([4, 2, null]);
    const takeBack = fleet.noteClaim(video.instance_id);
    expect(roomOf(fleet, image, video)).toEqual([2, 1]);
    fleet.noteClaim(image.instance_id);
    expect(roomOf(fleet, image, video)).toEqual([1, 0]);
    takeBack();
    fleet.noteRelease(image.instance_id);
    expect(roomOf(fleet, image, video, alone)).toEqual([4, 2, null]);
  });

  it('follows the count of a poll, with the calls of all processes', async () => {
    const box = await aBox(3);
    const [image, voice] = [await onBox(box), await onBox(box)];
    const namesake = await onBox({ ...(await aBox(3)), host: box.host });
    await joinHost(db, namesake.owner_project, { name: box.host, slots: 3 });
    const fleet = await aPoller();
    await claimElsewhere(image);
    await claimElsewhere(image);
    await fleet.refresh();
    expect(roomOf(fleet, image, voice, namesake)).toEqual([1, 1, 3]);
  });

  it('changes for all with the newest registration, and an instance that leaves takes none of it', async () => {
    const box = await aBox(4);
    const [image, voice] = [await onBox(box), await onBox(box, { takes: 4 })];
    const fleet = await aPoller();
    fleet.noteClaim(voice.instance_id);
    expect(roomOf(fleet, image, voice)).toEqual([0, 0]);
    await joinHost(db, box.owner_project, { name: box.host, slots: 2 });
    await db('instance').where({ instance_id: image.instance_id }).update({ host_slots: 2 });
    await fleet.refresh();
    expect(roomOf(fleet, image, voice)).toEqual([2, 1]);
    expect(fleet.find(voice.instance_id)?.host_calls).toBe(1);
    fleet.noteClaim(voice.instance_id);
    await db('instance').where({ instance_id: voice.instance_id }).update({ host: null, takes: null });
    await fleet.refresh();
    expect(roomOf(fleet, image, voice)).toEqual([2, null]);
  });
});

it('a release wakes the calls that wait for any instance of the host', async () => {
  const box = await aBox(1);
  const [image, voice] = [await onBox(box), await onBox(box)];
  const fleet = await aPoller();
  fleet.noteClaim(image.instance_id);
  const waiting = fleet.waitForRelease(aSlotWish(voice.name), 60_000, new AbortController().signal);
  fleet.noteRelease(image.instance_id);
  expect(await waiting).toBe(true);
});
