"""Encrypted tables of Iceberg Java: made, and read, with keys that it is given."""

from __future__ import annotations

from typing import Any

from tests.java import IcebergJava


class EncryptingJava:
    """Iceberg Java that is told the key of a table; made once for a process of it."""

    def __init__(self, java: IcebergJava) -> None:
        compiler = java.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(java.jvm.Thread.currentThread().getContextClassLoader())
        compiler.cook(_SOURCE)
        self._ask = compiler.getClassLoader().loadClass("Encrypting").newInstance()

    def opened(self, metadata_location: str, key_id: str, key: bytes) -> Any:
        """Return the table that a metadata file tells of."""
        return self._ask.apply("open", f"{key_id}\t{key.hex()}\t{metadata_location}")

    def made(self, folder: str, key_id: str, key: bytes) -> str:
        """Return the metadata file of a table of v3: rows (1, a), (2, b), (3, c), (4, d).

        None is deleted: of a DV that Iceberg Java 1.11 encrypts, it does not keep the key.
        """
        location: str = self._ask.apply("make", f"{key_id}\t{key.hex()}\t{folder}")
        return location


#: For the compiler that Spark brings along, which knows no generics.
_SOURCE = """
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.iceberg.*;
import org.apache.iceberg.data.*;
import org.apache.iceberg.encryption.*;
import org.apache.iceberg.io.*;
import org.apache.iceberg.types.Types;

public class Encrypting implements java.util.function.BiFunction {
  public Object apply(Object what, Object asked) {
    String[] told = ((String) asked).split("\\t");
    FileIO io = new org.apache.iceberg.hadoop.HadoopFileIO(
        new org.apache.hadoop.conf.Configuration());
    Keys keys = new Keys(told[0], told[1]);
    try {
      if (what.equals("open")) {
        TableMetadata metadata = TableMetadataParser.read(io, told[2]);
        Operations operations = new Operations(metadata, io, keys, null);
        operations.decrypting = new Decrypting(operations.io(), new BaseTable(operations, "t"));
        return new BaseTable(operations, "t");
      }
      return make(io, keys, told[0], told[2]);
    } catch (Exception error) {
      throw new RuntimeException(error);
    }
  }

  private String make(FileIO io, Keys keys, String id, String folder) throws Exception {
    Schema schema = new Schema(
        new Types.NestedField[] {
          Types.NestedField.optional(1, "n", Types.LongType.get()),
          Types.NestedField.optional(2, "diagnosis", Types.StringType.get())
        });
    Map properties = new HashMap();
    properties.put("format-version", "3");
    properties.put("encryption.key-id", id);
    TableMetadata first = TableMetadata.newTableMetadata(
        schema, PartitionSpec.unpartitioned(), SortOrder.unsorted(), folder, properties);
    Operations operations = new Operations(first, io, keys, folder);
    Table table = new BaseTable(operations, "t");
    for (int part = 0; part < 2; part++) {
      EncryptedOutputFile out = operations.encryption().encrypt(
          io.newOutputFile(folder + "/data/" + part + ".parquet"));
      DataWriter writer = (DataWriter) new GenericAppenderFactory(schema).newDataWriter(
          out, FileFormat.PARQUET, null);
      for (int row = 0; row < 2; row++) {
        GenericRecord one = GenericRecord.create(schema);
        one.setField("n", Long.valueOf(2 * part + row + 1));
        one.setField("diagnosis", "hush-" + "abcd".charAt(2 * part + row));
        writer.write(one);
      }
      writer.close();
      table.newFastAppend().appendFile(writer.toDataFile()).commit();
    }
    return operations.at;
  }
}

/** Java's reader of rows asks for delete files by their location alone. */
class Decrypting implements FileIO {
  private final FileIO io;
  private final Map deletes = new HashMap();

  Decrypting(FileIO io, Table table) {
    this.io = io;
    Iterator tasks = table.newScan().planFiles().iterator();
    while (tasks.hasNext()) {
      Iterator all = ((FileScanTask) tasks.next()).deletes().iterator();
      while (all.hasNext()) {
        DeleteFile one = (DeleteFile) all.next();
        deletes.put(one.location(), io.newInputFile(one));
      }
    }
  }

  public InputFile newInputFile(String path) {
    return deletes.containsKey(path) ? (InputFile) deletes.get(path) : io.newInputFile(path);
  }

  public InputFile newInputFile(DataFile file) { return io.newInputFile(file); }

  public InputFile newInputFile(DeleteFile file) { return io.newInputFile(file); }

  public InputFile newInputFile(ManifestFile file) { return io.newInputFile(file); }

  public InputFile newInputFile(ManifestListFile file) { return io.newInputFile(file); }

  public OutputFile newOutputFile(String path) { return io.newOutputFile(path); }

  public void deleteFile(String path) { io.deleteFile(path); }
}

class Keys implements KeyManagementClient {
  private final String id;
  private final byte[] key;

  Keys(String id, String hex) {
    this.id = id;
    this.key = new byte[hex.length() / 2];
    for (int i = 0; i < key.length; i++) {
      key[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
    }
  }

  private void require(String asked) {
    if (!id.equals(asked)) throw new IllegalArgumentException("no key " + asked);
  }

  public ByteBuffer wrapKey(ByteBuffer plain, String by) {
    require(by);
    return ByteBuffer.wrap(new Ciphers.AesGcmEncryptor(key).encrypt(bytes(plain), null));
  }

  public ByteBuffer unwrapKey(ByteBuffer wrapped, String by) {
    require(by);
    return ByteBuffer.wrap(new Ciphers.AesGcmDecryptor(key).decrypt(bytes(wrapped), null));
  }

  private byte[] bytes(ByteBuffer buffer) {
    ByteBuffer copy = (ByteBuffer) buffer.duplicate();
    byte[] found = new byte[copy.remaining()];
    copy.get(found);
    return found;
  }

  public void initialize(Map properties) {}

  public void close() {}
}

class Operations implements TableOperations {
  private TableMetadata now;
  private final FileIO plain;
  private final Keys keys;
  private final String folder;
  private EncryptionManager manager;
  private int version = 0;
  public String at;
  public FileIO decrypting;

  Operations(TableMetadata now, FileIO plain, Keys keys, String folder) {
    this.now = now;
    this.plain = plain;
    this.keys = keys;
    this.folder = folder;
  }

  public TableMetadata current() { return now; }

  public TableMetadata refresh() { return now; }

  public EncryptionManager encryption() {
    if (manager == null) {
      manager = EncryptionUtil.createEncryptionManager(
          now.encryptionKeys(), now.properties(), keys);
    }
    return manager;
  }

  public FileIO io() {
    return decrypting != null ? decrypting : EncryptingFileIO.combine(plain, encryption());
  }

  public void commit(TableMetadata base, TableMetadata metadata) {
    TableMetadata.Builder builder = TableMetadata.buildFrom(metadata);
    Iterator all = EncryptionUtil.encryptionKeys(encryption()).values().iterator();
    while (all.hasNext()) builder.addEncryptionKey((EncryptedKey) all.next());
    version = version + 1;
    at = folder + "/metadata/0000" + version + "-java.metadata.json";
    TableMetadataParser.write(builder.build(), plain.newOutputFile(at));
    now = TableMetadataParser.read(plain, at);
  }

  public String metadataFileLocation(String name) { return folder + "/metadata/" + name; }

  public LocationProvider locationProvider() {
    return LocationProviders.locationsFor(folder, now.properties());
  }
}
"""
