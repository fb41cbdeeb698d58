// A node that runs commands, as systemd has it: each in a unit of its own, which ends with all that it has started, whatever is
// killed, stopped or rebooted on the way.
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { JobView } from '../support/agenda/client.ts';
import { type Host, startHost } from '../support/host.ts';
import { provision } from '../support/installed.ts';
import { describeHost, tellFigure } from '../support/system.ts';

const token = 'tok-3f9c';
const url = 'http://127.0.0.1:7100/v1';
const section = { machine_id: 7, token, central_base_url: '', max_output_bytes: 1024 };
const unitOf = (id: string): string => `reeve-command@${id}.service`;

describeHost('a node that runs commands', () => {
  let host: Host;
  beforeAll(async () => {
    host = startHost('web-1');
    const directory = await provision(host);
    await host.output([`${directory}/scripts/install`]);
    await host.write('/etc/reeve/reeve.yaml', `${JSON.stringify({ commands: section })}\n`, '0600');
    await host.output(['reeve', 'units', 'render', '--write']);
  });
  afterAll(() => host?.stop());

  const call = async (
    method: string,
    path: string,
    body?: object,
  ): Promise<{ status: number; text: string }> => {
    const data = body === undefined ? [] : ['-d', JSON.stringify(body)];
    const argv = [
      'curl',
      '-sS',
      '-m',
      '60',
      '-X',
      method,
      '-w',
      '\n%{http_code}',
      '-H',
      `X-Agenda-Node-Token: ${token}`,
    ];
    const text = await host.output([...argv, ...data, `${url}${path}`]);
    const [, said = '', status = ''] = /^([\s\S]*)\n(\d{3})$/.exec(text) ?? [];
    return { status: Number(status), text: said };
  };
  const dispatch = async (id: string, shell: string, more: object = {}): Promise<void> => {
    const answer = await call('POST', '/jobs', { job_id: id, mode: 'shell', shell, ...more });
    expect(answer).toEqual({ status: 202, text: JSON.stringify({ job_id: id }) });
  };
  const look = async (id: string): Promise<JobView> => {
    const { status, text } = await call('GET', `/jobs/${id}`);
    expect([status, text]).toEqual([200, text]);
    return JSON.parse(text) as JobView;
  };
  const ended = async (id: string): Promise<JobView> =>
    await host.waitFor(
      `the end of command ${id}`,
      async () => {
        const view = await look(id);
        return view.status === 'running' ? undefined : view;
      },
      { timeoutMs: 120_000 },
    );
  /** Where systemd keeps what a command has started, by either layout. */
  const cgroupsOf = async (id: string): Promise<string> => {
    const places = ['', 'systemd/'].map(
      (place) => `/sys/fs/cgroup/${place}system.slice/system-reeve*/${unitOf(id)}`,
    );
    return await host.sh(`ls -d ${places.join(' ')} 2>/dev/null || true`);
  };
  const isGone = async (id: string): Promise<void> => {
    await host.waitFor(`the unit of command ${id} to be gone`, async () => {
      const { LoadState, ActiveState } = await host.show(unitOf(id), 'LoadState', 'ActiveState');
      const isOver = ActiveState === 'inactive' && LoadState !== '';
      return isOver && (await countMarked(id)) === 0 && (await cgroupsOf(id)) === '';
    });
  };
  const countMarked = async (id: string): Promise<number> =>
    Number(await host.sh(`pgrep -fc '[m]ark-${id}' || true`));
  const hasBegun = async (id: string, processes = 1): Promise<void> => {
    await host.waitFor(`command ${id} to begin`, async () => (await countMarked(id)) >= processes);
  };
  /** Processes that ignore SIGTERM, in the group and out of it, named for the command: three, and what they wait by. */
  const stubborn = (id: string): string =>
    `trap '' TERM; setsid sh -c 'trap "" TERM; while :; do sleep 1; done; : mark-${id}' & sh -c 'trap "" TERM; while :; do sleep 1; done; : mark-${id}' & while :; do sleep 1; done`;

  it('answers on its socket, runs commands outside the API and any sandbox, and ends both (A1, A3)', async () => {
    expect((await call('GET', '/health')).status).toBe(200);
    await dispatch(
      'free',
      'cat /proc/self/cgroup; touch /usr/local/here /root/here && grep CapEff /proc/self/status; umask',
    );
    const { output, ...end } = await ended('free');
    expect(end).toEqual({ status: 'success', exit_code: 0 });
    expect(output).toContain('reeve-command@free.service');
    expect(output).toMatch(/^CapEff:\s+0000[0-9a-f]*[1-9a-f][0-9a-f]*$/m);
    expect(output).toMatch(/^0022$/m);
    await isGone('free');
  });

  it('leaves nothing of a command that is over, whatever it has left behind (A49)', async () => {
    await dispatch(
      'leaves',
      `setsid sh -c 'exec >/dev/null 2>&1; while :; do sleep 1; done; : mark-leaves' & exit 4`,
    );
    expect(await ended('leaves')).toMatchObject({ status: 'failed', exit_code: 4, error: 'exit status 4' });
    await isGone('leaves');
  });

  it('ends a command that is deleted with all that ignores SIGTERM, inside its group and outside (A45, A49)', async () => {
    await dispatch('deleted', stubborn('deleted'));
    await hasBegun('deleted', 3);
    const [cgroup = ''] = (await cgroupsOf('deleted')).split('\n');
    expect((await host.read(`${cgroup}/cgroup.procs`)).split('\n').length).toBeGreaterThan(4);
    const startedAtMs = performance.now();
    expect((await call('DELETE', '/jobs/deleted')).status).toBe(204);
    expect((await call('GET', '/jobs/deleted')).status).toBe(404);
    await isGone('deleted');
    tellFigure(
      `a command that ignores SIGTERM is gone ${((performance.now() - startedAtMs) / 1000).toFixed(1)} s after a DELETE`,
    );
    expect(await host.sh('ls /var/lib/reeve/commands | grep deleted || true')).toBe('');
  });

  it('runs each command of one id that is deleted and used again at once (A46, A48)', async () => {
    for (let count = 0; count < 10; count += 1) {
      await dispatch('again', `echo ${count}`);
      expect(await ended('again')).toEqual({ status: 'success', exit_code: 0, output: `${count}\n` });
      expect((await call('DELETE', '/jobs/again')).status).toBe(204);
    }
    await isGone('again');
  });

  it('bounds a gigabyte of output, and keeps the memory of what reads it flat (A54)', async () => {
    const sizes = { little: 2 ** 26, flood: 2 ** 30 };
    const most: Record<string, number> = {};
    for (const [id, bytes] of Object.entries(sizes)) {
      await dispatch(id, `head -c ${bytes} /dev/zero | tr '\\0' x; echo; grep VmHWM /proc/$PPID/status`);
      const { output, ...end } = await ended(id);
      expect(end).toEqual({ status: 'success', exit_code: 0 });
      expect(output).toMatch(/^\.\.\.\[truncated\]\.\.\.\nx+\nVmHWM:\s+\d+ kB\n$/);
      expect(output).toHaveLength(section.max_output_bytes);
      most[id] = Number(/VmHWM:\s+(\d+)/.exec(output)?.[1]) / 1024;
    }
    const { little = 0, flood = 0 } = most;
    tellFigure(
      `memory of reeve beside a command that prints: 64 MB ${little.toFixed(0)} MB, 1 GB ${flood.toFixed(0)} MB`,
    );
    expect(flood - little).toBeLessThan(32);
    await isGone('flood');
  });

  it('leaves nothing of one that closes its pipes and forks away (A49)', async () => {
    const away = `setsid sh -c 'sh -c "while :; do sleep 1; done; : mark-closed" & exit'`;
    await dispatch('closed', `exec <&- >&- 2>&-; trap '' TERM HUP; ${away}; sleep 1; exit 5`);
    await hasBegun('closed');
    expect(await ended('closed')).toMatchObject({ status: 'failed', exit_code: 5, output: '' });
    await isGone('closed');
  });

  it('deletes hundreds of commands at once, and nobody waits for long (A46, A47)', async () => {
    const now = new Date().toISOString();
    const state = { kind: 'success', startedAt: now, endedAt: now };
    const record = { version: 1, jobId: 'ID', generation: 'g-1', acceptedAt: now, bootId: 'any', state };
    await host.write('/tmp/record', JSON.stringify(record));
    const place = '/var/lib/reeve/commands/old-$i.json';
    await host.sh(`for i in $(seq 300); do sed "s/ID/old-$i/" /tmp/record > ${place}; done`);
    expect(await look('old-300')).toMatchObject({ status: 'success' });
    const since = (await host.output(['date', '+%s'])).trim();
    const many = ['-m', '60', '-Z', '--parallel-immediate', '--parallel-max', '300'];
    const told = ['-o', '/dev/null', '-w', '%{http_code}\\n', '-X', 'DELETE'];
    const header = `X-Agenda-Node-Token: ${token}`;
    const startedAtMs = performance.now();
    const answers = await host.output([
      'curl',
      '-sS',
      ...many,
      ...told,
      '-H',
      header,
      `${url}/jobs/old-[1-300]`,
    ]);
    const tookMs = performance.now() - startedAtMs;
    expect(answers).toBe('204\n'.repeat(300));
    tellFigure(`300 DELETEs at once: ${(tookMs / 1000).toFixed(1)} s`);
    expect(await host.sh('ls /var/lib/reeve/commands | grep -c old- || true')).toBe('0\n');
    const warnings = await host.journal(
      ...['-u', 'reeve-api-commands.service', '-p', 'warning', `--since=@${since}`],
    );
    expect(warnings.map(({ message }) => message)).toEqual([]);
  });

  it('tells the logs that it may read, and why where there is none', async () => {
    await host.sh(`mkdir -p /srv/mixed; cd /srv/mixed; echo line | tee app__one.log app__one__own.log app__two.log;
      chmod 600 *; chown nobody app__one__own.log app__two.log`);
    const { status, text } = await call('GET', '/logs/app/one?dir=/srv/mixed');
    const logs = [{ service: '', file: 'app__one.log', lines: ['line'] }];
    expect([status, text]).toEqual([200, JSON.stringify({ app: 'app', instance: 'one', logs })]);
    expect(await call('GET', '/logs/app/two?dir=/srv/mixed')).toEqual({
      status: 500,
      text: JSON.stringify({ error: 'cannot read "/srv/mixed/app__two.log": EACCES: permission denied' }),
    });
  });

  it('says of logs in a directory that its unit hides why there are none', async () => {
    await host.sh(
      'mkdir -p /srv/logs /root/logs && for d in /srv/logs /root/logs; do echo line > $d/app__one.log; done',
    );
    expect(await call('GET', '/logs/app/one?dir=/srv/logs')).toMatchObject({ status: 200 });
    expect(await call('GET', '/logs/app/one?dir=/root/logs')).toEqual({
      status: 404,
      text: JSON.stringify({
        error:
          'no logs found for app/one in "/root/logs": reeve-api-commands.service does not see what is below /root',
      }),
    });
  });

  it('outlives an API that is killed, and one that is upgraded', async () => {
    await dispatch('outlives', 'until [ -e /run/go ]; do sleep 0.1; done; echo end');
    await host.output(['systemctl', 'kill', '--signal=KILL', 'reeve-api-commands.service']);
    await host.output(['systemctl', 'stop', 'reeve.target']);
    await host.output(['systemctl', 'start', 'reeve.target']);
    expect(await look('outlives')).toMatchObject({ status: 'running', output: '' });
    await host.write('/run/go', '');
    expect(await ended('outlives')).toEqual({ status: 'success', exit_code: 0, output: 'end\n' });
  });

  it('tells of a command whose unit was stopped, and of one whose process was killed', async () => {
    await dispatch('stopped', `echo said; ${stubborn('stopped')}`);
    await dispatch('killed', stubborn('killed'));
    await hasBegun('stopped', 3);
    await hasBegun('killed', 3);
    await host.output(['systemctl', 'stop', unitOf('stopped')]);
    await host.output(['systemctl', 'kill', '--kill-who=main', '--signal=KILL', unitOf('killed')]);
    const failed = { status: 'failed', exit_code: -1 };
    expect(await ended('stopped')).toEqual({
      ...failed,
      output: 'said\n',
      error: 'interrupted: its unit was stopped',
    });
    await isGone('stopped');
    await isGone('killed');
    expect(await ended('killed')).toEqual({
      ...failed,
      output: '',
      error: 'interrupted: its process was killed',
    });
  });

  it('runs commands as another user, who may become more with what it has', async () => {
    const commands = { ...section, user: 'nobody' };
    await host.write('/etc/reeve/reeve.yaml', `${JSON.stringify({ commands })}\n`, '0600');
    await host.output(['systemctl', 'stop', 'reeve-api-commands.service']);
    await dispatch('nobody', 'id -un; grep NoNewPrivs /proc/self/status; cat /etc/reeve/reeve.yaml');
    const { output } = await ended('nobody');
    expect(output).toMatch(/^nobody\nNoNewPrivs:\s+0\n/);
    expect(output).toContain('Permission denied');
    await host.write('/etc/reeve/reeve.yaml', `${JSON.stringify({ commands: section })}\n`, '0600');
    await host.output(['systemctl', 'stop', 'reeve-api-commands.service']);
  });

  it('forgets nothing by a reboot, and what that interrupted has failed for that reason (A40, A41)', async () => {
    await dispatch('before', 'echo before');
    await ended('before');
    await dispatch('during', 'echo begun; sleep 1000; : mark-during');
    await host.waitFor(
      'the command to run',
      async () => (await host.show(unitOf('during'), 'SubState')).SubState === 'running',
    );
    await host.reboot();
    expect(await ended('before')).toEqual({ status: 'success', exit_code: 0, output: 'before\n' });
    expect(await ended('during')).toMatchObject({
      status: 'failed',
      exit_code: -1,
      error: 'interrupted by a reboot',
    });
    await dispatch('lost', 'sleep 1000');
    await host.waitFor(
      'the command to run',
      async () => (await host.show(unitOf('lost'), 'SubState')).SubState === 'running',
    );
    await host.losePower();
    expect(await ended('lost')).toMatchObject({
      status: 'failed',
      exit_code: -1,
      error: 'interrupted by a reboot',
    });
    expect((await call('GET', '/jobs/never')).status).toBe(404);
  });
});
