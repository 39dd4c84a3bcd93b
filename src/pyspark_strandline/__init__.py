"""Where PySpark finds `format("strandline")`: it imports every top-level module `pyspark_*` and registers its DefaultSource.

Always true: importing this imports PySpark's own base class and nothing else, since one module that fails here would take every
other data source with it. All work is in `strandline.spark`, imported when Spark asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "strandline"

    def schema(self) -> StructType:
        from strandline.spark import source

        return source.schema(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        from strandline.spark import source

        return source.batch_reader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from strandline.spark import source

        return source.stream_reader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from strandline.spark import source

        return source.batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from strandline.spark import source

        return source.stream_writer(self.options, schema, overwrite)
