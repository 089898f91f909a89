# SPDX-License-Identifier: Apache-2.0
"""The queries and the tables in Spark, on this machine alone, against DuckDB."""
import datetime
import decimal
import os
import shutil
import subprocess

import pytest

import harness
from conftest import DuckDB, QUERIES, statements
from test_parquet import next_version

JAVA_HOME = os.environ.get("JAVA_HOME")
JAVA = shutil.which("java", path=f"{JAVA_HOME}/bin") if JAVA_HOME else shutil.which("java")


def java_version():
    told = subprocess.run([JAVA, "-version"], capture_output=True, text=True).stderr
    return int(told.split('"')[1].split(".")[0]) if '"' in told else 0


if not JAVA:
    pytest.skip("Spark needs Java 17 or newer, and there is no java in PATH (Debian: openjdk-17-jre-headless)", allow_module_level=True)
if java_version() < 17:
    pytest.skip(f"Spark needs Java 17 or newer, and java in PATH is version {java_version()}", allow_module_level=True)

from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark")
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = (SparkSession.builder.master("local[2]").appName("gpuprof").config("spark.ui.enabled", "false")
               .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.memory", "2g")
               .config("spark.sql.shuffle.partitions", "4").config("spark.sql.warehouse.dir", str(folder)).getOrCreate())
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def plain(value):
    """A figure to nine digits: engines sum up in an order of their own."""
    if isinstance(value, decimal.Decimal):
        value = float(value)
    if isinstance(value, datetime.date):
        return value.isoformat()[:10]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def rows_of(spark, tables, sql):
    """Of the tables that `gpuprof sql --print spark` makes views of. Making them takes longer than most queries."""
    if spark.conf.get("gpuprof.tables", "") != str(tables):
        for statement in statements(tables, "spark"):
            spark.sql(statement)
        spark.conf.set("gpuprof.tables", str(tables))
    return [tuple(plain(value) for value in row) for row in spark.sql(sql).collect()]


def rows_of_duckdb(tables, sql):
    return [tuple(plain(value) for value in row) for row in DuckDB(tables).rows(sql)]


@pytest.mark.parametrize("source", ["tables", "run_tables", "weeks", "budgeted"])
@pytest.mark.parametrize("name", QUERIES)
def test_query(name, source, spark, request):
    tables = request.getfixturevalue(source)
    tables = tables[1] if source == "budgeted" else tables
    sql = statements(tables, "spark", name)[-1]
    assert rows_of(spark, tables, sql) == rows_of_duckdb(tables, sql)
    if source == "weeks":
        assert rows_of_duckdb(tables, sql), "two weeks have an answer to each query"


@pytest.mark.parametrize("table", ["processes", "steps", "gpu_work", "calls", "operators", "collectives", "samples", "reports", "verdicts",
                                   "findings"])
def test_table(table, spark, run_tables):
    """Each value of each column, its name and its place."""
    columns = [row[0] for row in DuckDB(run_tables).rows(f"describe {table}")]
    order = ", ".join(f"{column} nulls last" for column in columns)
    sql = f"select {', '.join(columns)} from {table} order by {order}"
    assert rows_of(spark, run_tables, sql) == rows_of_duckdb(run_tables, sql)


def test_next_version(spark, tables, tmp_path):
    folder = tmp_path / "tables"
    shutil.copytree(tables, folder)
    next_version(folder)
    sql = "select job, count(*), count(more_ns), sum(more_ns), sum(duration_ns) from steps group by job order by job nulls last"
    found = rows_of(spark, folder, sql)
    assert found == rows_of_duckdb(folder, sql) and found[0][0] == "next" and found[0][2] > 0 and found[1][2] == 0
