"""Stores that have changed on the disk: noticed, never read as numbers, repaired as far as it goes."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from bit_flips import flipped, run, same, try_flips
from simulators import noisy

from kernelbayes.simulation import StoreError, check_store, open_runs, repair_store, simulate

N = 120


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "runs.sqlite"
    run(path, N)
    return path


@pytest.fixture
def store(source, tmp_path):
    path = tmp_path / "runs.sqlite"
    path.write_bytes(source.read_bytes())
    return path


def execute(store, statement, *values):
    with closing(sqlite3.connect(store, isolation_level=None)) as db:
        return db.execute(statement, values).fetchall()


def spoil(store, words, times=1):
    """Change the first byte of some words wherever they stand, or where they stand first."""
    data = store.read_bytes()
    assert words in data
    store.write_bytes(data.replace(words, bytes([words[0] ^ 1]) + words[1:], times))


def refused(store, problem):
    """Both ways to open it refuse it, with the same words, and leave it alone."""
    before = store.read_bytes()
    for call in (lambda: open_runs(store), lambda: run(store, N + 3)):
        with pytest.raises(
            StoreError, match=rf"store: .*runs\.sqlite is damaged: {problem}.*`kernelbayes store check "
        ):
            call()
    assert store.read_bytes() == before
    report = check_store(store)
    assert not report.ok
    return report


def test_single_bits(tmp_path):
    came = try_flips(tmp_path, 12, n=150)
    assert came["reported by check"] + came["in bytes that hold nothing"] == 12
    assert came["reported by check"] > 0


class TestNoticed:
    def test_an_output(self, store, source):
        output = execute(source, "SELECT output FROM runs WHERE run = 17")[0][0]
        spoil(store, output)
        report = refused(store, "run 17 is not as it was written")
        assert (report.lost, report.runs) == ((17,), N - 1)

    @pytest.mark.parametrize(
        ("column", "value"),
        [
            ("parameters", bytes(16)),
            ("output", None),
            ("form", 2),
            ("form", None),
            ("seconds", 1.0),
            ("kind", "raised"),
            ("reason", "because"),
            ("finished", 0.0),
            ("run", 9999),
            ("checksum", None),
            ("checksum", b""),
            ("parameters", "text"),
            ("seconds", "text"),
        ],
    )
    def test_every_column(self, store, column, value):
        ((run,),) = execute(store, f"SELECT min(run) FROM runs WHERE run >= 5 AND {column} IS NOT ?", value)
        execute(store, f"UPDATE runs SET {column} = ? WHERE run = ?", value, run)
        refused(store, f"run ({run}|9999) is not as it was written")

    @pytest.mark.parametrize("fact", ["entropy", "names", "simulator", "source"])
    def test_what_results_depend_on(self, store, fact):
        execute(store, "UPDATE facts SET value = value || ' ' WHERE name = ?", fact)
        report = refused(store, f"the fact '{fact}' is not as it was written")
        assert (report.runs, report.lost) == (N, ())

    def test_forms_and_copies(self, store):
        execute(store, "UPDATE forms SET value = replace(value, 'x3', 'x4')")
        refused(store, "form 1 of outputs is not as it was written")

    def test_the_header(self, store, source):
        for place in (0, 17, 20, 23, 27, 31, 47, 59, 63, 71, 80, 95):
            flipped(source, store, place, 2)
            assert not check_store(store).ok, place

    def test_a_tree_that_is_broken(self, store, source):
        pages = execute(source, "PRAGMA page_count")[0][0]
        root = execute(source, "SELECT rootpage FROM sqlite_master WHERE name = 'runs'")[0][0]
        for page in {root, pages // 2, pages}:
            store.write_bytes(source.read_bytes())
            with store.open("r+b") as file:
                file.seek((page - 1) * 4096)
                file.write(bytes(4096))
            assert not check_store(store).ok


class TestRepair:
    def test_it_keeps_all_but_what_is_lost(self, store, source):
        execute(store, "UPDATE runs SET output = ? WHERE run IN (5, 17)", bytes(48))
        damaged = store.read_bytes()
        report = repair_store(store)
        assert (report.lost, report.runs) == ((5, 17), N - 2)
        assert report.backup.read_bytes() == damaged
        assert report.backup.name == "runs.sqlite.damaged"
        kept = open_runs(store)
        assert same(kept, open_runs(source), runs=True)
        np.testing.assert_array_equal(run(store, N).outputs, open_runs(source).outputs)  # with the two that were lost
        assert check_store(store).ok
        execute(store, "UPDATE runs SET output = ? WHERE run = 5", bytes(48))
        assert repair_store(store).backup.name == "runs.sqlite.damaged-1"

    @pytest.mark.parametrize("words", [b"CREATE TABLE runs", b"SQLite format 3", b'"x3"', b"entropy"])
    def test_words_that_are_there_twice_or_known(self, store, source, words):
        spoil(store, words)
        assert repair_store(store).lost == ()
        assert same(open_runs(store), open_runs(source))
        np.testing.assert_array_equal(run(store, N + 3).outputs, run(None, N + 3).outputs)  # the seed is there

    def test_the_root_of_the_tree(self, store, source):
        """Rows are found on their pages where nothing leads to them."""
        root = execute(source, "SELECT rootpage FROM sqlite_master WHERE name = 'runs'")[0][0]
        with store.open("r+b") as file:
            file.seek((root - 1) * 4096)
            file.write(bytes(4096))
        report = repair_store(store)
        assert report.runs == N
        assert same(open_runs(store), open_runs(source))

    def test_rows_longer_than_a_page(self, tmp_path):
        store = tmp_path / "runs.sqlite"
        before = simulate(lambda row, rng: rng.normal(size=2000), np.arange(8.0), store=store, random_state=0)
        spoil(store, before.outputs[3].tobytes()[4096:4112])
        spoil(store, b"SQLite format 3")
        report = repair_store(store, tmp_path / "new.sqlite")
        assert (report.lost, report.written) == ((3,), tmp_path / "new.sqlite")
        np.testing.assert_array_equal(open_runs(report.written).outputs, np.delete(before.outputs, 3, axis=0))
        with pytest.raises(ValueError, match="to: there is a file"):
            repair_store(store, tmp_path / "new.sqlite")

    def test_a_seed_that_is_lost_is_told(self, store):
        execute(store, "UPDATE facts SET value = '\"6\"' WHERE name = 'entropy'")
        execute(store, "UPDATE spare SET value = '\"6\"' WHERE name = 'fact entropy'")
        assert any("the seed is lost" in said for said in repair_store(store).problems)
        assert len(run(store, N)) == len(open_runs(store))

    def test_a_sound_one_is_left_alone(self, store):
        before = store.read_bytes()
        report = repair_store(store)
        assert report.ok
        assert (report.backup, report.written) == (None, None)
        assert store.read_bytes() == before

    def test_what_is_no_store(self, tmp_path):
        (tmp_path / "letter.txt").write_text("Dear reader, " * 100)
        execute(tmp_path / "other.sqlite", "CREATE TABLE facts (a, b)")
        (tmp_path / "nothing").touch()
        for name in ("letter.txt", "other.sqlite", "nothing"):
            before = (tmp_path / name).read_bytes()
            for call in (check_store, repair_store):
                with pytest.raises(ValueError, match=r"is not a store of runs|is empty"):
                    call(tmp_path / name)
            assert (tmp_path / name).read_bytes() == before


class TestOldStores:
    """Those of a version without checksums."""

    @pytest.fixture
    def old(self, store):
        with closing(sqlite3.connect(store, isolation_level=None)) as db:
            for table in ("facts", "forms", "runs"):
                db.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
            db.execute("DROP TABLE spare")
            db.execute("PRAGMA user_version = 1")
        return store

    def test_they_are_read_as_they_are(self, old, source):
        before = old.read_bytes()
        assert same(open_runs(old), open_runs(source))
        report = check_store(old)
        assert report.ok
        assert report.unverified == N
        assert "of a version without checksums" in str(report)
        assert old.read_bytes() == before

    def test_they_get_checksums(self, old, source):
        np.testing.assert_array_equal(run(old, N + 3).outputs, run(None, N + 3).outputs)
        report = check_store(old)
        assert (report.ok, report.runs, report.unverified) == (True, N + 3, N)
        execute(old, "UPDATE runs SET seconds = 1.0 WHERE run = 5")
        with pytest.raises(StoreError, match="run 5 is not as it was written"):
            open_runs(old)
        assert repair_store(old).unverified == N

    def test_one_that_is_at_work_is_waited_for(self, old):
        from kernelbayes.simulation._owners import this_process

        owner = this_process()
        owner.begin()
        execute(old, "INSERT INTO owners VALUES (1, ?, ?, ?, ?)", *owner)
        with pytest.raises(StoreError, match=r"in use by process .* with an older version"):
            run(old, N)
        owner.end()
        run(old, N)

    def test_broken_trees_are_noticed_and_repaired(self, old, source):
        pages = execute(old, "PRAGMA page_count")[0][0]
        root = execute(old, "SELECT rootpage FROM sqlite_master WHERE name = 'runs'")[0][0]
        first = int.from_bytes(old.read_bytes()[(root - 1) * 4096 + 12 :][:2], "big")
        leaf = int.from_bytes(old.read_bytes()[(root - 1) * 4096 + first :][:4], "big")
        assert 1 < leaf <= pages
        with old.open("r+b") as file:
            file.seek((leaf - 1) * 4096)
            file.write(bytes(4096))
        report = repair_store(old)
        assert 0 < len(report.lost) < N / 2
        assert report.runs + len(report.lost) == N
        assert same(open_runs(old), open_runs(source), runs=True)


def test_a_store_with_a_log_beside_it(tmp_path):
    """As after a kill: the log is read by check, and kept by repair."""
    store, other = tmp_path / "runs.sqlite", tmp_path / "copy.sqlite"
    holder = sqlite3.connect(store, isolation_level=None)
    simulate(noisy, np.arange(5.0), store=store, random_state=0)
    holder.execute("SELECT * FROM runs").fetchall()
    before = simulate(noisy, np.arange(40.0), store=store)
    for end in ("", "-wal"):
        (tmp_path / f"copy.sqlite{end}").write_bytes((tmp_path / f"runs.sqlite{end}").read_bytes())
    holder.close()
    assert (tmp_path / "copy.sqlite-wal").stat().st_size > 0
    assert check_store(other).runs == 40
    spoil(other, b"SQLite format 3")
    report = repair_store(other)
    assert (report.runs, report.lost) == (40, ())
    np.testing.assert_array_equal(open_runs(other).outputs, before.outputs)
