import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** A HDFS until standard input ends. Its only argument is the directory that it keeps its data in;
 *  it prints the port of its name node once it serves. */
public class MiniHdfs {
    public static void main(String[] arguments) throws Exception {
        Configuration configuration = new Configuration();
        // One data node, so one copy; nobody waits for a second.
        configuration.setInt("dfs.replication", 1);
        configuration.setBoolean("dfs.permissions.enabled", false);
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(configuration, new File(arguments[0]))
            .numDataNodes(1)
            .build();
        cluster.waitActive();
        System.out.println("port " + cluster.getNameNodePort());
        System.out.flush();
        while (System.in.read() >= 0) {
            // Whoever started it is still there.
        }
        cluster.shutdown();
        System.exit(0);
    }
}
